#pragma once
// Races of made-up fleets in a store in memory, for tests of the aggregation. Internal to furlong/fleet.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "furlong/base/json.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet::testing {

inline constexpr std::int64_t day_us = 86'400'000'000;
/// 2026-03-01T00:00:00Z: the end of the windows of these tests.
inline constexpr std::int64_t the_end_us = 1'772'323'200'000'000;

struct RaceSpec {
  std::string machine = "m1";
  std::string slot;                    ///< empty: one of the machine's own
  std::uint64_t epoch = 0;             ///< 0: a new one
  std::int64_t ts_us = 0;              ///< 0: some time on the last day, each later than the one before
  std::map<std::string, float> gains;  ///< without base
  float base_rate = 100;
  float power_limit_w = absent;
  float ceiling = absent;
  std::string winner;
  bool pinned = false;
};

/// A store and what is put into it. Not thread safe.
class Fleet {
 public:
  DecodedRace race(const RaceSpec& spec) {
    DecodedRace race;
    ++number_;
    for (int i = 0; i < 8; ++i) race.id[15 - i] = static_cast<std::uint8_t>(number_ >> (8 * i));
    race.id[6] = 0x70;
    race.id[8] = 0x80;
    race.ts_us =
        spec.ts_us != 0 ? spec.ts_us : the_end_us - day_us + static_cast<std::int64_t>(number_) * 1000;
    race.slot = spec.slot.empty() ? "slot-" + spec.machine : spec.slot;
    race.subject = subject;
    race.silicon.hash = subject.silicon.starts_with("label:") ? "" : subject.silicon;
    race.label = label;
    race.driver = driver;
    race.epoch = fmt::format("{:016x}", spec.epoch != 0 ? spec.epoch : 0x1000000 + number_);
    race.source = source;
    race.winner = spec.winner;
    race.base_rate = spec.base_rate;
    race.power_limit_w = spec.power_limit_w;
    race.ceiling = spec.ceiling;
    race.pinned = spec.pinned;
    race.variants.push_back({.name = "base", .gain_pct = 0, .rate = spec.base_rate});
    for (const auto& [name, gain] : spec.gains)
      race.variants.push_back({.name = name, .gain_pct = gain, .rate = spec.base_rate * (1 + gain / 100)});
    if (!std::isnan(power_w))
      for (VariantGain& variant : race.variants) variant.power_w = power_w;
    return race;
  }

  void add(const std::string& machine, DecodedRace race) { races_.emplace_back(machine, std::move(race)); }
  void add(const RaceSpec& spec) { add(spec.machine, race(spec)); }
  void add(int times, const RaceSpec& spec) {
    for (int i = 0; i < times; ++i) add(spec);
  }

  std::vector<std::pair<std::string, DecodedRace>>& races() { return races_; }

  /// Everything in a new store, in the order it was added.
  OpenStore store() const {
    const auto data = make_memory_data();
    const auto store = open_memory_store(data);
    std::set<std::string> known;
    for (const auto& [machine, race] : races_) {
      if (known.insert(machine).second) {
        EXPECT_TRUE(store->put_machine({.id = machine}));
      }
      IncomingBatch batch{.id = record_id_text(race.id), .machine = machine, .body = "header\nline\n"};
      batch.received_us = race.ts_us;
      batch.lines.push_back({.id = record_id_text(race.id), .race = race});
      EXPECT_TRUE(store->add({&batch, 1}));
    }
    return [data]() -> Result<std::unique_ptr<Store>> { return open_memory_store(data); };
  }

  Aggregate aggregated(AggregateOptions options = {}) const {
    if (!options.until_us) options.until_us = the_end_us;
    auto result = aggregate(store(), options);
    EXPECT_TRUE(result) << result.error().text();
    return result ? *std::move(result) : Aggregate{};
  }

  Subject subject{.silicon = "00000000000000aa",
                  .backend = "cuda",
                  .program = "lottery",
                  .program_class = "{}",
                  .metric = "",
                  .unit = "MH/s"};
  std::string label = "Card", driver = "580.10", source = "src";
  float power_w = absent;

 private:
  std::uint64_t number_ = 0;
  std::vector<std::pair<std::string, DecodedRace>> races_;
};

inline const RowEvidence& only_row(const Aggregate& aggregate) {
  static const RowEvidence nothing;
  EXPECT_EQ(aggregate.cards.size(), 1u);
  if (aggregate.cards.size() != 1 || aggregate.cards[0].rows.size() != 1) {
    ADD_FAILURE() << "one card with one row was expected";
    return nothing;
  }
  return aggregate.cards[0].rows[0];
}

inline const VariantEvidence& variant_of(const RowEvidence& row, std::string_view name) {
  static const VariantEvidence nothing;
  for (const VariantEvidence& variant : row.variants)
    if (variant.name == name) return variant;
  ADD_FAILURE() << "no variant " << name;
  return nothing;
}

/// Everything of it as text, to be compared byte by byte.
inline std::string text_of(const Aggregate& aggregate) {
  std::string text = json_pretty(to_json(aggregate)) + record::print(to_tuning(aggregate));
  for (const CardEvidence& card : aggregate.cards)
    text += json_pretty(to_json(card)) + explain_text(card, aggregate.options);
  return text + fmt::format("{} {}", aggregate.races, aggregate.superseded);
}

}  // namespace furlong::fleet::testing
