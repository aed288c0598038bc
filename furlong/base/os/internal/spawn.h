#pragma once
// Starting one child process: everything between fork and exec.

#include <cstdint>
#include <string>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::internal {

/// What to start, prepared in full so that the child only makes system calls.
struct SpawnPlan {
  std::string program;                   ///< path for execve
  std::vector<std::string> arguments;    ///< argv
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string folder;                    ///< working folder; empty: inherited
  int input = -1;                        ///< descriptors (>= 3) that become 0, 1 and 2 of the child
  int output = -1;
  int error = -1;
  std::uint64_t address_space_bytes = 0;
  std::uint64_t cpu_seconds = 0;
  std::string group_file;  ///< cgroup.procs of the control group to join; empty: none
  /// Process group to join, which must have a member of this session. 0: it leads one of its own, and gets
  /// SIGKILL when this process ends, which one that joins does not.
  int join_group = 0;
  int priority = 0;  ///< nice; filled in by spawn(): that of the calling thread
};

/// Starts it in its process group, with the priority of the calling thread. Returns its process id once the
/// program has been executed. Thread safe.
Result<int> spawn(const SpawnPlan& plan);

/// The errors of starting a program, by errno.
Code spawn_code(int number);

}  // namespace furlong::internal
