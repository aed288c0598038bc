#pragma once
// The system kills a child of a process that is killed itself (kill -9), but not the child's own children. A
// guard among them does.

#include "furlong/base/error.h"
#include "furlong/base/os/internal/pipe.h"

namespace furlong::internal {

/// A small process (sh) in the group of a child, which waits at a pipe from this process and kills the group,
/// itself with it, once the pipe has no writer any more: when this process ends in whatever way. It is no
/// child of the child, which thus never waits for it, and counts neither in its times nor in its memory.
class GroupGuard {
 public:
  GroupGuard() = default;  ///< guards nothing
  /// `group`: of a child that was not waited for yet. The errors of spawn().
  static Result<GroupGuard> start(int group);
  /// Has what is left of the group killed, and waits for the guard.
  ~GroupGuard();
  GroupGuard(GroupGuard&& other) noexcept;
  GroupGuard& operator=(GroupGuard&& other) noexcept;

  /// As the destructor; it guards nothing then.
  void end();

 private:
  GroupGuard(int pid, Pipe writer) : pid_(pid), writer_(std::move(writer)) {}
  int pid_ = 0;  // 0: none
  Pipe writer_;
};

}  // namespace furlong::internal
