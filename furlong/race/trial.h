#pragma once
// The trial: unknown variants run first in a process of their own, so that one which hangs, traps or takes
// the memory takes only that process with it. The lines in between: docs/formats/trial-protocol.md.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"

namespace furlong::race {

// ---- The child's side: what `furlong trial` does.

struct TrialSubject {
  std::shared_ptr<const program::Instance> instance;
  std::unique_ptr<device::Device> device;
};

struct TrialServer {
  std::function<std::optional<std::string>()> read_line;    ///< of standard input; nullopt at its end
  std::function<Status(std::string_view line)> write_line;  ///< to standard output, with a newline, flushed
  /// The program of Context::trial_program_json, bound to the device of this address.
  std::function<Result<TrialSubject>(const std::string& program_json, const std::string& device)> open;
};

/// Reads one request and tries its variants one after another: compile, run the vectors and fresh random
/// inputs on the check's problem, finish, look at the guard zones. Each is announced before it runs. An Error
/// is also written as an event; the caller ends with a nonzero exit status. Gives up core files and new
/// privileges for good.
Status serve_trial(const TrialServer& server);

// ---- The parent's side.

struct TrialAsked {
  std::vector<std::string> command;  ///< argv of the child
  std::string program_json, device;
  std::vector<std::string> variants;
  std::uint64_t seed = 1;
  double timeout_s = 20;   ///< for running one variant; compiling it and starting have three times that
  double budget_s = 120;   ///< for all; what is not tried by then stays `untried`
  Clock* clock = nullptr;  ///< null: the system's
  std::uint64_t memory_bytes = 0;  ///< of device buffers
  std::uint64_t address_space_bytes =
      0;  ///< of the process; 0 on cards, whose drivers map more than there is
  std::function<void(std::size_t done, const std::string& variant)> doing;
};

struct TrialFinding {
  enum class Kind {
    untried,  ///< no trial could be had, or no time was left
    good,     ///< it ran
    refused,  ///< it does not compile or its launch does not fit: no danger
    bad,      ///< it hung, trapped, took the memory or wrote out of bounds
  };
  Kind kind = Kind::untried;
  std::string why;
  bool certain =
      true;  ///< false: the process died once and nobody could be named; to be tried again next time
};

struct TrialReport {
  std::vector<TrialFinding> findings;  ///< by variant asked
  std::vector<std::string> notes;
  bool out_of_budget = false;  ///< TrialAsked::budget_s was used up before all were tried
  int processes = 0;           ///< children started
};

/// Tries them in one child, which is replaced when it dies. The variant in hand is the culprit when it kills
/// a child alone, too; otherwise one that had passed before is, and is found by bisection. A child that
/// cannot be started is no Error: all stay untried, and a note says why. `timeout` when stopped; no child
/// outlives the call.
Result<TrialReport> run_trial(Processes& processes, const TrialAsked& asked, std::stop_token stop);

}  // namespace furlong::race
