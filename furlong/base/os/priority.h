#pragma once

namespace furlong {

/// Lowers the calling thread's priority, and that of the processes it starts from now on, by `steps` of the
/// system's scale (nice: 0 to 19). For work in the background of other work on the same cores. Nothing where
/// the system has no such thing; cannot be taken back.
void lower_thread_priority(int steps);

}  // namespace furlong
