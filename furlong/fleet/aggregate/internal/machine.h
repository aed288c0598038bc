#pragma once
// One subject's races, machine by machine as the store gives them, reduced to medians: the only place that
// sees single races. What is kept grows with machines and variants, never with races. Internal to
// furlong/fleet/aggregate.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::fleet::internal {

/// The power cap a card ran under: its limit in watts, to the nearest of forty steps a decade (6% apart), the
/// n-th being 10^(n / 40) W; 0 where it is not known. In watts and not in percent of the card's default
/// limit, which records do not state: cards of one silicon are compared, for which it is the same measure.
using Stratum = std::uint8_t;
inline constexpr int stratum_steps = 40;
Stratum stratum_of(float power_limit_w);
/// "400 W"; the rounded steps of ISO 3, series R40.
std::string stratum_name(Stratum stratum);

/// Adds to a set of few numbers; one of many is put in order now and then, and by make_unique().
void note(std::vector<std::uint32_t>& numbers, std::uint32_t number);
void make_unique(std::vector<std::uint32_t>& numbers);

/// Which race of its slot a record is of: its epoch, or the UTC day of `ts_us` where it has none.
inline std::uint64_t epoch_or_day(const RaceRow& row) {
  return row.has_epoch ? row.epoch : static_cast<std::uint64_t>(std::int64_t{utc_day(row.ts_us)});
}

/// Timed, whatever came of it. A variant that failed has no say, even if it was timed before.
bool was_timed(Exit exit);
/// Of a rate, a draw or a ceiling: it is known.
bool positive(float value);

/// Of one machine at most so many values count, the newest: a machine that floods the store takes no memory.
inline constexpr std::size_t most_values = 1u << 19;

/// Medians of one machine's races of one variant under one power cap.
struct Cell {
  std::uint32_t machine = 0, variant = 0;
  Stratum stratum = 0;
  bool above_ceiling = false;
  float gain = absent, rate = absent, rate_per_w = absent;
  std::uint32_t samples = 0, races = 0;
  std::uint32_t new_races = 0;  ///< that are in no cell of a lower cap: these add up to the machine's races
};
/// The median gain of one machine's races of one variant with one driver, or on one day.
struct Slice {
  std::uint32_t machine = 0, variant = 0;
  std::uint32_t key = 0;  ///< number of the driver's name; day since 1970
  float gain = absent;
  std::uint32_t samples = 0, races = 0;
};

struct MachineEvidence {
  MachineNumber number = 0;
  std::uint32_t counted = 0;  ///< records that gave gains
  std::uint32_t races = 0;    ///< different epochs among them
  std::uint32_t seen_pinned = 0;
  std::uint32_t fallback = 0, no_base = 0, no_power = 0, flooded = 0;  ///< records, each for its reason
  WordNumber fallback_variant = 0;                                     ///< one of them
  std::vector<WordNumber> slots, labels;                               ///< that it reported, ascending
  std::vector<WordNumber> sources;                                     ///< of counted records, ascending
  std::vector<std::pair<Stratum, std::uint32_t>> strata;               ///< counted records, ascending
  /// The median of what it reported when one variant won; the largest over variants.
  float ceiling = absent;
  std::int64_t newest_us = 0;  ///< of what counted
};

/// What is kept of a subject. Variant 0 is base.
struct SubjectData {
  std::vector<WordNumber> variants{0};  ///< name by number; [0] is not used
  std::vector<MachineEvidence> machines;
  std::vector<Cell> cells;
  std::vector<Slice> drivers, days;
  std::vector<std::array<std::uint32_t, 10>> exits;  ///< by variant, by Exit: counted records
  std::vector<std::uint32_t> won;                    ///< by variant
  std::unordered_map<WordNumber, int> sources_seen;  ///< of all records → machines that reported it
  int machines_with_source = 0;                      ///< that reported any
  std::unordered_set<WordNumber> named;              ///< variants that pinned runs name
  std::uint64_t seen = 0, superseded = 0;
};

/// What a gain is computed from.
enum class Quantity {
  recorded,   ///< the race's own paired gain
  rates,      ///< variant's rate over base's in the same race
  rate_per_w  ///< likewise, rates over draws
};

/// Numbers below these limits have names; rows with others came after the names were read, and do not count.
struct KnownNames {
  WordNumber words = 0;
  MachineNumber machines = 0;
  WordNumber base = 0;  ///< of "base"; 0: no record names it
  /// Its variants' names are each reader's to look at.
  bool know(const RaceRow& row) const;
};

/// Not thread safe; its buffers serve one subject after another.
class MachineReader {
 public:
  explicit MachineReader(KnownNames names) : names_(names), local_(names.words, none) {}
  void begin(Quantity quantity, SubjectData& into);
  /// Rows in the order of a scan.
  void add(const RaceRow& row);
  void end();

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Row {
    std::size_t first = 0;
    std::uint32_t count = 0;
    std::uint64_t epoch = 0;
    std::int64_t ts_us = 0;
    WordNumber slot = 0, driver = 0, source = 0, winner = 0;
    std::uint32_t day = 0;
    float base_rate = absent, base_power = absent, ceiling = absent;
    Stratum stratum = 0;
    bool has_epoch = false;
    bool base_fallback = false;
    std::uint32_t race = 0;  ///< number of its epoch within the machine
  };
  struct Value {
    std::uint32_t variant = 0;
    float gain = absent, rate = absent, power = absent;
    Exit exit = Exit::stayed;
    bool fallback = false;
  };
  struct Entry {
    std::uint32_t row = 0;
    float gain = absent, rate = absent, rate_per_w = absent;
  };
  /// Rows' keys as small numbers.
  struct Keys {
    std::vector<std::uint32_t> names;   ///< key by small number, ascending
    std::vector<std::uint32_t> of_row;  ///< small number by place in order_
  };

  std::uint32_t local(WordNumber word);
  void take_values(const RaceRow& row);
  void drop_flood(std::size_t most);
  void end_machine();
  void keep_latest();
  void count_sources();
  void number_races();
  void read_rows();
  void read_row(std::uint32_t place);
  float gain_of(const Value& value, const Row& row) const;
  void add_entry(std::uint32_t variant, Entry entry);
  void sort_entries();
  void reduce(std::uint32_t variant, std::span<const Entry> entries);
  void add_cell(std::uint32_t variant, std::uint32_t key, std::span<const Entry> entries);
  Slice slice_of(std::uint32_t variant, std::uint32_t key, std::span<const Entry> entries);
  template <class Take>
  void split(const Keys& keys, std::span<const Entry> entries, const Take& take);
  template <class KeyOf>
  void number_keys(Keys& keys, const KeyOf& key_of);
  void read_ceiling();
  std::uint32_t races_of(std::span<const Entry> entries) const;
  std::uint32_t new_races_of(std::uint32_t variant, std::span<const Entry> entries);
  float median(std::vector<float>& values) const;

  const KnownNames names_;
  std::vector<std::uint32_t> local_;  ///< variant by word
  Quantity quantity_ = Quantity::recorded;
  SubjectData* into_ = nullptr;

  MachineEvidence machine_;
  std::vector<WordNumber> sources_;  ///< of this machine, of all records
  std::vector<Row> rows_;
  std::vector<Value> values_;
  std::vector<std::uint32_t> order_;  ///< rows that count, by epoch
  std::vector<std::pair<std::uint32_t, Entry>> unsorted_;
  std::vector<std::uint32_t> counted_for_;  ///< by race: the variant that it was last counted for
  std::vector<std::uint32_t> counts_;       ///< by variant; zeros between machines
  std::vector<std::uint32_t> touched_;      ///< variants of this machine
  std::vector<Entry> entries_, part_;
  std::vector<std::uint32_t> places_;
  Keys strata_, drivers_, days_;
  std::vector<float> gains_, rates_, rates_per_w_;
};

}  // namespace furlong::fleet::internal
