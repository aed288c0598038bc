#pragma once
// A race record as the fleet's store keeps it: decoded once, at intake, into what aggregation reads
// (docs/formats/fleet-store.md). The signed bytes lie beside it. Value types; pure functions, safe from any
// thread.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/record/record.h"

namespace furlong::fleet {

using RecordId = std::array<std::uint8_t, 16>;
/// Of the text form "01956a3c-8f00-7abc-8def-0123456789ab", and back; `invalid` for another form.
Result<RecordId> parse_record_id(std::string_view text);
std::string record_id_text(const RecordId& id);

/// What may be compared with each other: one kind of silicon, one program and class, raced by one back end
/// for one metric. Different members are different subjects.
struct Subject {
  std::string silicon;        ///< Silicon::hash; "label:NAME" where the record states none
  std::string backend;        ///< "cuda"
  std::string program;        ///< "lottery"
  std::string program_class;  ///< class_to_json(), features by name, on one line: "{}" for none
  std::string metric;         ///< of gains: "energy"; empty: the rate
  std::string unit;           ///< of rates
  auto operator<=>(const Subject&) const = default;
};

/// Absent numbers are NaN: they take part in no median.
inline constexpr float absent = std::numeric_limits<float>::quiet_NaN();

/// How a variant left its race, as VariantDetail::exit; `stayed` also for one that was timed to the end.
enum class Exit : std::uint8_t {
  stayed,
  compile,
  trial,
  gate,
  launch,
  quarantined,
  eliminated,
  duplicate,
  budget,
  other
};
std::string_view exit_name(Exit exit);
Exit exit_of(std::string_view text);

struct VariantGain {
  std::string name;
  float gain_pct = absent;  ///< over base, paired within the race; base itself: 0
  float half_pct = absent;  ///< half the width of its interval
  float rate = absent;      ///< in the subject's unit
  float power_w = absent;   ///< mean while it ran
  Exit exit = Exit::stayed;
  bool fallback = false;  ///< another kernel than its name says
  bool operator==(const VariantGain&) const;
};

struct DecodedRace {
  RecordId id{};
  std::int64_t ts_us = 0;  ///< of the record's own clock
  std::string slot;
  Subject subject;
  record::Silicon silicon;
  std::string label;  ///< of the card
  std::string driver;
  std::string agent;
  std::string epoch;   ///< 16 hexadecimal digits, or empty
  std::string source;  ///< hash of the program's text
  std::string winner;  ///< empty: none
  record::Verdict verdict = record::Verdict::none;
  float rate = absent, base_rate = absent;  ///< of the winner, of base
  float gain_pct = absent;                  ///< of the winner
  float ceiling = absent;
  float power_limit_w = absent;
  float power_pct = absent;  ///< of the card's default limit
  bool pinned = false;       ///< not raced: the tuning named the variant
  std::vector<VariantGain> variants;
  bool operator==(const DecodedRace&) const;
};

/// Days since 1970, UTC. Races without an epoch are told apart by it: of a machine, slot and day the latest
/// counts.
std::int32_t utc_day(std::int64_t ts_us);

/// What of a record is kept decoded. `invalid` when check_complete() is not met, or a name is longer than
/// 200 bytes or has control characters, or it has more than 4096 variants: names the key.
Result<DecodedRace> decode(const record::RaceRecord& record);

/// One variant of a packed row; `variant` is the store's number of its name.
struct PackedGain {
  std::uint32_t variant = 0;
  float gain_pct = absent, half_pct = absent, rate = absent, power_w = absent;
  Exit exit = Exit::stayed;
  bool fallback = false;
};
/// Appends to `bytes`.
void pack(const PackedGain& gain, std::string& bytes);
/// Replaces what `gains` held. `corrupt` says at which byte.
Status unpack(std::string_view bytes, std::vector<PackedGain>& gains);

}  // namespace furlong::fleet
