#pragma once
// Which program is due now and which is next: by the clock, or by a command that follows a chain.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/fleet/agent/config.h"
#include "furlong/record/worker_protocol.h"

namespace furlong {
class Clock;
}

namespace furlong::fleet {

/// One program of the schedule.
struct Turn {
  std::string seed;  ///< of the epoch: 64 hexadecimal digits
  std::int64_t day = 0;
  std::string pack;  ///< folder of a pack that is there already; empty: it is to be made
  record::Pair pair() const { return {.epoch = seed.substr(0, 16), .day = day}; }
  bool operator==(const Turn&) const = default;
};

struct Due {
  std::optional<Turn> current;  ///< nullopt: nothing is known yet
  std::optional<Turn> next;     ///< only within the lead time before its boundary
  /// Until `next` takes its place, in seconds; nullopt: unknown (a chain's time is its own).
  std::optional<double> next_in_s;
  bool operator==(const Due&) const = default;
};

/// Thread safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual Due due(std::int64_t wall_us) = 0;
};

/// Epoch i runs from i * epoch_s to (i + 1) * epoch_s, Unix time; its seed is the BLAKE2b-256 of the label,
/// the configured seed and i; its day is the whole days from first_day to its beginning. A function of the
/// time alone, so that a clock that jumps only chooses another turn.
class ClockSchedule : public Schedule {
 public:
  explicit ClockSchedule(ScheduleConfig config) : config_(std::move(config)) {}
  Due due(std::int64_t wall_us) override;
  Turn turn(std::int64_t index) const;

 private:
  const ScheduleConfig config_;
};

/// What a chain-source command prints, one JSON object a line: the epoch with that seed and day begins at
/// `boundary`; the chain stands at `height`.
struct ChainLine {
  Turn turn;
  std::int64_t height = 0;
  std::int64_t boundary = 0;
  bool operator==(const ChainLine&) const = default;
};
/// `invalid` says what is wrong. Unknown keys are skipped.
Result<ChainLine> parse_chain_line(std::string_view line);

/// Follows the lines. A line whose boundary is above its height announces the next turn, else it tells the
/// current one.
class ChainSchedule : public Schedule {
 public:
  explicit ChainSchedule(std::int64_t lead_units) : lead_units_(lead_units) {}
  void take(const ChainLine& line);
  Due due(std::int64_t wall_us) override;

 private:
  const std::int64_t lead_units_;
  std::mutex mutex_;
  std::optional<Turn> current_;
  std::optional<ChainLine> next_;
};

/// Tells when wall time and steady time part: a clock that was set, or a machine that slept. One thread.
class JumpWatch {
 public:
  explicit JumpWatch(Clock& clock);
  /// Seconds that the wall clock jumped since the last call, when that is more than `least_s`; else 0.
  double look(double least_s = 2);

 private:
  Clock& clock_;
  std::int64_t steady_ns_;
  std::int64_t wall_us_;
};

}  // namespace furlong::fleet
