#pragma once
// The one process runner: fork and exec, own process group, limits, streaming lines. A child dies with
// this process (its own descendants do when this process ends it or is interrupted, and with a guard always).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong {

struct ProcessRequest {
  /// argv[0] is searched in PATH when it has no '/'; else it is relative to this process's folder.
  std::vector<std::string> argv = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to this process's
  std::filesystem::path folder = {};                                  ///< working folder; empty: inherited
  std::string input = {};                 ///< written to its standard input, then closed
  std::uint64_t address_space_bytes = 0;  ///< RLIMIT_AS; 0: none
  std::uint64_t cpu_seconds = 0;          ///< RLIMIT_CPU; 0: none
  /// Folder of a control group (version 2) that it joins before its program begins; empty: this process's.
  std::filesystem::path control_group = {};
  /// How long its group has to end by itself once it is interrupted (the stop token): it gets SIGTERM, and
  /// SIGKILL this much later if its leader is still there. 0, or less: SIGKILL at once. Time limits, kill()
  /// and the end of the object kill at once, whatever this says.
  double grace_s = 0;
  /// Has a guard in its group, a sleeping sh, kill the whole group also when this process is killed (kill
  /// -9), which otherwise only the child itself notices. What has left the group lives on. The guard comes a
  /// moment after the child has begun; where none can be had, the child runs without.
  bool guarded = false;
};

/// How a child ended.
struct ProcessEnd {
  int exit_code = -1;  ///< valid when signal == 0; -1: unknown, someone else waited for it
  int signal = 0;      ///< nonzero: killed by it
  bool timed_out = false;
  double limit_s = 0;    ///< what it was given, when timed_out
  bool stopped = false;  ///< the stop token asked for the end
  /// Highest resident set of it and the descendants it waited for. Exact where it is above that of this
  /// process; below, the highest seen in samples of the child alone, since the system then tells ours; 0 when
  /// it ended before the first sample.
  std::uint64_t peak_bytes = 0;
  /// Processor time of it and the descendants it waited for.
  double user_s = 0, system_s = 0;
  std::string standard_output;  ///< what was not taken by read_line; the first 16 MiB
  std::string standard_error;   ///< at most 1 MiB kept, the end of it
  /// "exit status 1", "killed by signal 11 (Segmentation fault)", "ran past 5.0 s and was killed".
  std::string text() const;
};

/// A running child. Its whole process group is killed when it ends and when the object goes, so no
/// descendant is left. Used by one thread at a time, except interrupt().
class Child {
 public:
  virtual ~Child() = default;
  /// Next line of its standard output without the newline; nullopt at its end. `timeout` when none
  /// came within timeout_s (the child goes on), `exhausted` when a line is longer than 16 MiB.
  virtual Result<std::optional<std::string>> read_line(double timeout_s) = 0;
  /// Writes to its standard input (only when the request's `input` was empty), meanwhile keeping what it
  /// prints for read_line. `unavailable` when it has closed it.
  virtual Status write(std::string_view bytes) = 0;
  virtual void close_input() = 0;
  /// Kills the group and waits.
  virtual ProcessEnd kill() = 0;
  /// Closes its input and waits for the end; past timeout_s the group is killed and timed_out is set.
  virtual ProcessEnd wait(double timeout_s) = 0;
  /// From any thread: has the group killed, after its grace_s, so that a read_line or wait in progress ends;
  /// `stopped` is set at the end, also of a child that then ended well. The signals are sent from within
  /// read_line, write and wait. A fake that never waits need not do anything.
  virtual void interrupt() {}
  virtual int pid() const = 0;
};

class Processes {
 public:
  virtual ~Processes() = default;
  /// `unavailable` names a program that is not there, `denied` one that may not be run, `exhausted` tells
  /// of no process or descriptor left. Thread safe.
  virtual Result<std::unique_ptr<Child>> start(const ProcessRequest& request) = 0;
  /// Start, collect the output, wait. The stop token interrupts it.
  Result<ProcessEnd> run(const ProcessRequest& request, double timeout_s, std::stop_token stop = {});
};

Processes& system_processes();

/// The running program's own file (/proc/self/exe).
Result<std::filesystem::path> own_executable();

}  // namespace furlong
