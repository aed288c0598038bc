#pragma once
// The race record: the evidence of one race on one device, one JSON object (docs/formats/race-record.md).
// The device's own worker writes it, the agent adds who it is, the hub and the audit read it.
// Value types; functions are pure and may be called from any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/lattice/value.h"

namespace furlong {
class Clock;
class Random;
}  // namespace furlong

namespace furlong::record {

inline constexpr int record_schema = 1;

/// How a race ended.
enum class Verdict { winner, dead_heat, out_of_budget, pinned, classic, none };
/// "winner", "dead-heat", "out-of-budget", "pinned", "classic", "none".
std::string_view verdict_name(Verdict verdict);
Result<Verdict> parse_verdict(std::string_view text);

/// A confidence interval, both ends in the unit of the value it belongs to (gains: percent).
struct Interval {
  double lo = 0;
  double hi = 0;
  bool operator==(const Interval&) const = default;
};

/// What a card is made of, as the device part reports it. `hash` is that part's 16 hexadecimal digits over
/// the other fields; it is stored, not computed here. `extra`: see RaceRecord.
struct Silicon {
  std::string vendor;
  std::string arch;
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  int memory_clock_mhz = 0;
  std::string hash;
  std::string extra;
  bool operator==(const Silicon&) const = default;
};
/// Silicon from its JSON object and back (also used by the tuning file); errors name `where`.
Json silicon_to_json(const Silicon& silicon);
Result<Silicon> silicon_from_json(const Json& object, std::string_view where);

/// The class of a program: its features by name, in the program's own order. The lottery's are `loads` and
/// `wide`.
using ProgramClass = std::vector<std::pair<std::string, lattice::Value>>;
/// "loads=128,wide=0"; for messages and table keys.
std::string class_text(const ProgramClass& program_class);
/// The same features with equal values, in any order.
bool same_class(const ProgramClass& a, const ProgramClass& b);
Json class_to_json(const ProgramClass& program_class);
/// Values are integers, other finite numbers, booleans or words; else `invalid` naming `where` and the
/// feature.
Result<ProgramClass> class_from_json(const Json& object, std::string_view where);

/// What is known about one variant beyond its rate. Absent members were not measured or are not known.
struct VariantDetail {
  std::optional<double> gain_pct;             ///< over base within the race's heats (paired)
  std::optional<Interval> ci;                 ///< of gain_pct, percent
  std::optional<int> heats;                   ///< accepted heats it ran in
  std::optional<int> regs;                    ///< registers a thread
  std::optional<std::uint64_t> spills;        ///< bytes spilled a thread
  std::optional<std::uint64_t> shared_bytes;  ///< a block
  std::optional<int> warps;                   ///< a block
  std::optional<double> memory_mib;           ///< device memory that it needs
  std::optional<double> error;  ///< of its output against the reference (norm ratio); 0 when exact
  std::optional<double> compile_ms;
  std::optional<double> power_w;  ///< mean while it ran
  std::string out;                ///< why it left the race; empty: it stayed
  /// Where it left: "compile", "trial", "gate", "launch", "quarantined" (faults), "eliminated" (timed, and
  /// slower), "duplicate" (of same_code_as), "budget" (it had no turn). Empty: it stayed, or not stated.
  std::string exit;
  std::string same_code_as;  ///< the variant with identical machine code that was timed for both
  bool fallback = false;     ///< another kernel than its name says: that was not to be had for shape or chip
  std::string extra;
  bool operator==(const VariantDetail&) const = default;
};

struct RacedVariant {
  std::string name;
  std::optional<double> rate;  ///< nullopt: it has none (it is out before it was timed)
  VariantDetail detail;
  bool operator==(const RacedVariant&) const = default;
};

/// Rates are in `unit` (MH/s for the lottery). Names are those of docs/formats/race-record.md.
///
/// Unknown keys of a newer writer are kept: `extra` holds them as one JSON object on one line (empty: none),
/// and to_json writes them back after the known ones, so that an agent that only adds its name loses nothing.
struct RaceRecord {
  std::string id;       ///< UUIDv7; empty in a worker's record
  std::string ts;       ///< "2026-03-01T12:00:00Z", UTC
  std::string machine;  ///< fingerprint of the machine's key; empty in a worker's record
  std::string slot;     ///< hash of the device's UUID
  std::string agent;    ///< version; empty in a worker's record
  std::string card;     ///< label, spaces as underscores
  Silicon silicon;
  std::string vendor;
  std::string backend;  ///< "cuda", "opencl", "metal", "host", "sim": always lower case here
  std::string driver;
  std::string compiler;
  std::string arch;
  std::string program;
  std::string language;                ///< of the kernel text: "cuda"; empty in old records
  std::string source;                  ///< content hash of the program's source or pack
  std::string epoch;                   ///< 16 hexadecimal digits; empty: the program has none
  ProgramClass program_class;          ///< `class`
  std::string unit;                    ///< of every rate; empty in old records
  std::string metric;                  ///< of every gain: "energy" (work per joule); empty: the rate
  std::vector<RacedVariant> variants;  ///< base first, in the order raced; written as `variants` and `detail`
  std::optional<double> ceiling;       ///< the rate that the card's measured ceilings allow
  std::string winner;                  ///< name; empty: none (base failed its gate)
  std::optional<double> rate;          ///< of the winner
  std::optional<double> base_rate;
  std::optional<double> gain_pct;  ///< of the winner over base, paired
  std::optional<Interval> ci;      ///< of gain_pct, percent
  Verdict verdict = Verdict::none;
  int heats = 0;  ///< accepted
  double paused_ms = 0;
  double compile_ms = 0;
  double bench_ms = 0;  ///< all timing, pauses included
  double total_ms = 0;
  bool pinned = false;  ///< the tuning file named the variant
  bool tuned = false;   ///< the tuning file gave the order
  std::vector<std::string> notes;
  std::optional<double> power_limit_w;
  std::optional<double> power_w;    ///< mean draw of the winner
  std::optional<double> power_pct;  ///< of the card's default limit
  double rate_per_w = 0;            ///< 0 when the card reports no draw
  std::string extra;

  const RacedVariant* find(std::string_view variant) const;
  bool operator==(const RaceRecord&) const = default;
};

/// A new UUIDv7 (RFC 9562): milliseconds of `clock`'s wall time, then 74 bits of `random`.
std::string make_record_id(Clock& clock, Random& random);
bool is_record_id(std::string_view text);
/// Microseconds since 1970 of a stamp as `ts` has it (fractions of a second are accepted); else `invalid`.
Result<std::int64_t> parse_stamp(std::string_view text);

/// Every key in a fixed order; what is absent or unknown is left out, `id`, `machine` and `agent` also when
/// empty.
Json to_json(const RaceRecord& record);
/// Strict: a known key of a wrong type or an impossible value is `invalid`, names `name` and the key. Another
/// schema is `incompatible` and says found and expected. Required: schema, ts, card, backend (or worker),
/// program, variants, verdict. `mhs`, `base_mhs`, `mh_per_w` stand for rate, base_rate, rate_per_w where
/// those are absent.
Result<RaceRecord> from_json(const Json& object, std::string_view name);
/// One line, no newline at its end.
std::string to_line(const RaceRecord& record);
Result<RaceRecord> parse_record(std::string_view line, std::string_view name);
/// What the hub asks beyond from_json: id, machine, slot and source are there. `invalid` names the missing
/// key.
Status check_complete(const RaceRecord& record);

}  // namespace furlong::record
