#include "furlong/base/os/internal/group_guard.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <system_error>

#include "furlong/base/os/internal/spawn.h"

namespace furlong::internal {

Result<GroupGuard> GroupGuard::start(int group) {
  FURLONG_TRY(PipePair pipe, make_pipe());
  const Pipe nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere.open())
    return fail(spawn_code(errno), "/dev/null: {}", std::generic_category().message(errno));
  SpawnPlan plan;
  plan.program = "/bin/sh";
  // Nobody writes to the pipe, so the read ends with its last writer. Signals that the child sends to its
  // own group must not take the guard away.
  plan.arguments = {"sh", "-c", "trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2; read -r end; kill -KILL 0"};
  plan.folder = "/";
  plan.input = pipe.reader.get();
  plan.output = plan.error = nowhere.get();
  plan.join_group = group;
  FURLONG_TRY(const int pid, spawn(plan));
  return GroupGuard(pid, std::move(pipe.writer));
}

GroupGuard::GroupGuard(GroupGuard&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), writer_(std::move(other.writer_)) {}

GroupGuard& GroupGuard::operator=(GroupGuard&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(writer_, other.writer_);
  return *this;
}

GroupGuard::~GroupGuard() { end(); }

void GroupGuard::end() {
  writer_.close();
  if (pid_ == 0) return;
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

}  // namespace furlong::internal
