#include "furlong/base/os/trap.h"

#include <algorithm>
#include <csignal>
#include <iterator>

namespace furlong {

bool is_trap(int signal) {
  constexpr int traps[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
  return std::ranges::find(traps, signal) != std::end(traps);
}

}  // namespace furlong
