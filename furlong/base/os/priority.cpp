#include "furlong/base/os/priority.h"

#include <sys/resource.h>

namespace furlong {

void lower_thread_priority(int steps) {
  // On Linux a process id of 0 means the calling thread, whose value its children inherit.
  const int now = getpriority(PRIO_PROCESS, 0);
  setpriority(PRIO_PROCESS, 0, now + steps);
}

}  // namespace furlong
