#pragma once
// The line protocol between a worker and whoever drives it (docs/formats/worker-protocol.md): commands on
// its standard input, events on its standard output. Value types; pure functions, safe from any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "furlong/base/error.h"

namespace furlong::record {

inline constexpr int worker_protocol = 1;
/// Of a job's name; a command's line is refused from 64 KiB on.
inline constexpr std::size_t most_job_bytes = 256;

/// One program of the schedule: an epoch by its first 16 hexadecimal digits, and a day.
struct Pair {
  std::string epoch;
  std::int64_t day = 0;
  bool operator==(const Pair&) const = default;
  /// "00f1e2d3c4b5a697 3"
  std::string text() const;
};

// --- commands

/// Build, gate and race the pair of this pack, ahead of its boundary.
struct PrepareCommand {
  Pair pair;
  std::string pack;  ///< folder
  bool operator==(const PrepareCommand&) const = default;
};
/// Work on the pair from now on. Nonces run from `start`, modulo 2^64.
struct JobCommand {
  Pair pair;
  std::string job;           ///< the caller's name for it; never empty
  std::uint64_t target = 0;  ///< a hash under it is a find
  std::uint64_t start = 0;
  std::uint64_t count = 0;  ///< 0: until the next job
  bool operator==(const JobCommand&) const = default;
};
struct StatusCommand {
  bool operator==(const StatusCommand&) const = default;
};
/// Pause: the device is left alone until the next job.
struct StopCommand {
  bool operator==(const StopCommand&) const = default;
};
struct QuitCommand {
  bool operator==(const QuitCommand&) const = default;
};
using WorkerCommand = std::variant<PrepareCommand, JobCommand, StatusCommand, StopCommand, QuitCommand>;

/// One line without a newline.
std::string print(const WorkerCommand& command);
/// `invalid` says which word was expected and at which column; an unknown command names the nearest.
Result<WorkerCommand> parse_worker_command(std::string_view line);

// --- events

struct ReadyEvent {
  int protocol = worker_protocol;
  std::string device;  ///< address: "cuda:0"
  std::string card;    ///< label
  std::string driver;
  std::string arch;
  bool operator==(const ReadyEvent&) const = default;
};
struct PreparedEvent {
  Pair pair;
  std::string variant;
  double ms = 0;  ///< since the command
  bool operator==(const PreparedEvent&) const = default;
};
/// A race line (race_line.h).
struct RaceEvent {
  std::string line;
  bool operator==(const RaceEvent&) const = default;
};
/// A race record without id, machine and agent (record.h), as the JSON that came.
struct RecordEvent {
  std::string json;
  bool operator==(const RecordEvent&) const = default;
};
/// What it does now, every few seconds while it works.
struct RateEvent {
  Pair pair;
  std::string variant;
  double mhs = 0;            ///< since the last of these
  std::uint64_t hashes = 0;  ///< since `ready`, of finished work
  std::string job;
  std::uint64_t next = 0;  ///< the first nonce of the job that is not done
  std::optional<double> power_w;
  bool operator==(const RateEvent&) const = default;
};
/// Verified on the host before it is told; each nonce of a job once.
struct FoundEvent {
  std::string job;
  std::uint64_t nonce = 0;
  std::uint64_t hash = 0;
  bool operator==(const FoundEvent&) const = default;
};
struct SwapEvent {
  std::string epoch;
  double gap_ms = 0;  ///< from the last chunk of the old pair to the first of the new
  std::int64_t day = 0;
  std::string variant;
  double gap_chunks = 0;  ///< the same in chunks of the new pair
  bool prepared = false;  ///< it was all ready before the job came
  double late_ms = 0;     ///< from the job command to the first chunk of the new pair
  bool operator==(const SwapEvent&) const = default;
};
/// A job has ended: its range is done, or another took its place.
struct DoneEvent {
  std::string job;
  std::uint64_t start = 0;
  std::uint64_t hashes = 0;  ///< nonces start … start + hashes - 1 are done, each once
  bool complete = false;     ///< all that was asked for
  bool operator==(const DoneEvent&) const = default;
};
/// What preparing a pair cost the work that went on meanwhile, against an undisturbed stretch before it.
struct LostEvent {
  Pair pair;
  double lost_ms = 0;  ///< pauses and slowdown
  double paused_ms = 0;
  double over_ms = 0;  ///< the time that preparing took
  bool operator==(const LostEvent&) const = default;
};
/// Live work differed from the reference: base serves again.
struct RevertedEvent {
  Pair pair;
  std::string variant;
  std::string why;
  bool operator==(const RevertedEvent&) const = default;
};
/// The device had to be opened again.
struct RecoveredEvent {
  double ms = 0;
  std::string why;
  bool operator==(const RecoveredEvent&) const = default;
};
struct StateEvent {
  std::string json;
  bool operator==(const StateEvent&) const = default;
};
struct NoteEvent {
  std::string text;
  bool operator==(const NoteEvent&) const = default;
};
struct ErrorEvent {
  Code code = Code::internal;
  std::string message;
  bool operator==(const ErrorEvent&) const = default;
};
struct ByeEvent {
  bool operator==(const ByeEvent&) const = default;
};
/// A line that this reader does not know: a newer worker's.
struct UnknownEvent {
  std::string line;
  bool operator==(const UnknownEvent&) const = default;
};
using WorkerEvent = std::variant<ReadyEvent, PreparedEvent, RaceEvent, RecordEvent, RateEvent, FoundEvent,
                                 SwapEvent, DoneEvent, LostEvent, RevertedEvent, RecoveredEvent, StateEvent,
                                 NoteEvent, ErrorEvent, ByeEvent, UnknownEvent>;

/// One line without a newline, whatever bytes names and messages hold. Times have three decimals, rates six
/// significant digits: printing what was parsed gives the same line.
std::string print(const WorkerEvent& event);
/// Words behind those of this version are skipped; a line that begins with another word is an UnknownEvent.
/// `invalid` says what was expected in a known one; `incompatible`: another protocol in `ready`, found and
/// expected named.
Result<WorkerEvent> parse_worker_event(std::string_view text);

}  // namespace furlong::record
