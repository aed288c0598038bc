#pragma once
// Work that may take its process with it: kernels and references are foreign code, which can trap, hang or
// call exit(). It runs in a forked copy of this process, and a guard outside learns how it ended and what it
// had in hand.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/base/os/process.h"

namespace furlong {

/// What guarded work has in hand, in memory that it shares with its guard. One thread at a time; costs about
/// as much as copying the name.
class Hand {
 public:
  Hand() = default;
  virtual ~Hand() = default;
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;
  /// `kind` is the caller's own, above 0; a name is cut after 4095 bytes. Held for longer than limit_s of the
  /// guard's time the work is taken for hung, and killed. Replaces what was in hand.
  virtual void take(std::uint32_t kind, std::string_view name, double limit_s) noexcept = 0;
  virtual void drop() noexcept = 0;
  /// Something that is done for good, for GuardEnd: the last one told stays.
  virtual void reach(std::uint32_t milestone) noexcept = 0;
};

struct GuardEnd {
  bool finished = false;  ///< the work returned, and `code` is what it returned
  int code = 0;
  bool hung = false;       ///< it was killed, since it held one thing past its limit
  double limit_s = 0;      ///< that limit, when it hung
  std::uint32_t kind = 0;  ///< what it had in hand at its end; 0: nothing
  std::string name;
  std::uint32_t milestone = 0;
  int interrupted = 0;  ///< the signal that the guard was sent (and passed on), or 0
  ProcessEnd end;       ///< exit code or signal
  /// "killed by signal 11 (Segmentation fault)", "exit status 0", "ran past 20 s".
  std::string text() const;
  /// Whether the work's own doing ended it: a trap, a call of exit(), a hang; not a kill from outside.
  bool by_itself() const;
};

/// Runs `work` in a forked copy of this process, in a process group of its own, and waits. To be called while
/// the process has one thread and no handler for SIGINT, SIGTERM or SIGHUP: these, Ctrl-Z and fg are passed
/// on to the work, which gets two seconds for what it has in hand once it is asked to end. The work has a
/// TMPDIR of its own, removed with all that it left there; it flushes its own output; it is killed when the
/// guard dies. `exhausted` where no process or memory can be had.
Result<GuardEnd> run_guarded(const std::function<int(Hand&)>& work);

}  // namespace furlong
