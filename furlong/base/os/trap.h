#pragma once

namespace furlong {

/// Whether a signal is one that a process's own fault raises (SIGSEGV, SIGABRT, …), and not a kill from
/// outside. Pure.
bool is_trap(int signal);

}  // namespace furlong
