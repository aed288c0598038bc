#include "furlong/base/os/internal/pipe.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "furlong/base/os/internal/spawn.h"

namespace furlong::internal {

Result<PipePair> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(spawn_code(errno), "making a pipe: {}", std::generic_category().message(errno));
  PipePair pair{Pipe(ends[0]), Pipe(ends[1])};
  for (Pipe* end : {&pair.reader, &pair.writer}) {
    if (end->get() > 2) continue;
    // This process runs without a standard stream, whose number the pipe has got: dup2 in the child
    // would trip over it.
    Pipe moved(fcntl(end->get(), F_DUPFD_CLOEXEC, 3));
    if (!moved.open())
      return fail(spawn_code(errno), "making a pipe: {}", std::generic_category().message(errno));
    std::swap(*end, moved);
  }
  return pair;
}

}  // namespace furlong::internal
