#include "furlong/fleet/aggregate/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "furlong/fleet/aggregate/internal/machine.h"
#include "furlong/fleet/aggregate/internal/testing.h"
#include "furlong/fleet/manifest/documents.h"

namespace furlong::fleet {
namespace {

using ::testing::ElementsAre;
using testing::Fleet;
using ::testing::HasSubstr;
using testing::only_row;
using testing::the_end_us;
using testing::variant_of;

std::vector<std::string> reasons(const RowEvidence& row) {
  std::vector<std::string> all;
  for (const SetAside& one : row.set_aside) all.push_back(one.machine + " " + one.reason);
  return all;
}

// ---- what counts

TEST(Aggregate, AnEmptyStoreGivesAnEmptyTuning) {
  const Aggregate aggregate = Fleet().aggregated();
  EXPECT_TRUE(aggregate.cards.empty());
  EXPECT_TRUE(to_tuning(aggregate).cards.empty());
}

TEST(Aggregate, OfOneEpochTheLatestCounts) {
  Fleet fleet;
  fleet.add({.epoch = 7, .gains = {{"u2", 50}}});
  fleet.source = "another";  // of the same source the store itself keeps the latest alone
  fleet.add({.epoch = 7, .gains = {{"u2", 2}}});
  fleet.add({.epoch = 8, .gains = {{"u2", 2}}});
  fleet.add({.slot = "second", .epoch = 8, .gains = {{"u2", 2}}});
  const Aggregate aggregate = fleet.aggregated();
  EXPECT_EQ(aggregate.races, 4u);
  EXPECT_EQ(aggregate.superseded, 1u);
  const Estimate& gain = variant_of(only_row(aggregate), "u2").gain_pct;
  EXPECT_EQ(gain.median, 2);
  EXPECT_EQ(gain.samples, 3);
  EXPECT_EQ(gain.races, 2);  // the eighth epoch on two cards of one machine is one race
  EXPECT_EQ(gain.machines, 1);
}

TEST(Aggregate, WithoutAnEpochTheLatestOfTheDayCounts) {
  Fleet fleet;
  for (int hour = 0; hour < 72; hour += 6) {
    DecodedRace race = fleet.race({.gains = {{"u2", hour % 24 == 18 ? 2.F : 50.F}}});
    race.epoch.clear();
    race.ts_us = the_end_us - 3 * testing::day_us + hour * 3'600'000'000;
    race.source = hour % 12 == 0 ? "a" : "b";  // of the same source the store itself keeps the latest alone
    fleet.add("m1", race);
  }
  const Aggregate aggregate = fleet.aggregated();
  const Estimate& gain = variant_of(only_row(aggregate), "u2").gain_pct;
  EXPECT_EQ(gain.median, 2);
  EXPECT_EQ(gain.samples, 3);
  EXPECT_EQ(gain.races, 3);
}

TEST(Aggregate, OnlyTheWindowCounts) {
  Fleet fleet;
  fleet.add({.ts_us = the_end_us, .gains = {{"u2", 1}}});
  fleet.add({.ts_us = the_end_us - 1, .gains = {{"u2", 2}}});
  fleet.add({.ts_us = the_end_us - 7 * testing::day_us, .gains = {{"u2", 3}}});
  fleet.add({.ts_us = the_end_us - 7 * testing::day_us - 1, .gains = {{"u2", 4}}});
  const Aggregate aggregate = fleet.aggregated();
  EXPECT_EQ(aggregate.races, 2u);
  EXPECT_EQ(variant_of(only_row(aggregate), "u2").gain_pct.median, 2.5);
  EXPECT_EQ(aggregate.updated_us, the_end_us - 1);
  // Without an end of its own the window ends just after the newest race.
  const auto newest = furlong::fleet::aggregate(fleet.store(), {});
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->window.to_us, the_end_us + 1);
  EXPECT_EQ(newest->races, 2u);
}

TEST(Aggregate, PinnedRunsGiveNoGains) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"u2", 2}}});
  fleet.add(5, {.gains = {{"u2", 90}}, .winner = "u2", .pinned = true});
  const Aggregate aggregate = fleet.aggregated();
  EXPECT_EQ(aggregate.races, 8u);
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.seen_pinned, 5);
  EXPECT_EQ(row.samples, 3);
  EXPECT_EQ(variant_of(row, "u2").gain_pct.median, 2);
}

TEST(Aggregate, FallbacksFailuresAndRacesWithoutBaseGiveNoGains) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"u2", 2}, {"u4", 3}}});
  DecodedRace fallback = fleet.race({.gains = {{"u2", 40}}});
  fallback.variants[1].fallback = true;
  fleet.add("m1", fallback);
  DecodedRace failed = fleet.race({.gains = {{"u4", 40}, {"u2", 2}}});
  failed.variants[2].exit = Exit::quarantined;
  fleet.add("m1", failed);
  DecodedRace without = fleet.race({.gains = {{"u2", 40}}});
  without.base_rate = without.variants[0].rate = absent;
  fleet.add("m1", without);
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(variant_of(row, "u2").gain_pct.samples, 4);
  EXPECT_EQ(variant_of(row, "u2").gain_pct.median, 2);
  EXPECT_EQ(variant_of(row, "u4").gain_pct.samples, 3);
  EXPECT_EQ(variant_of(row, "u4").exits.at("quarantined"), 1);
  EXPECT_THAT(reasons(row), ElementsAre("m1 fallback", "m1 no-base"));
}

TEST(Aggregate, EnergyIsRatePerWattWithinTheRace) {
  Fleet fleet;
  for (int i = 0; i < 3; ++i) {
    DecodedRace race = fleet.race({.gains = {{"fast", 10}, {"cool", -5}}});
    race.variants[0].power_w = 200;
    race.variants[1].power_w = 100;  // cool: by name
    race.variants[2].power_w = 250;
    fleet.add("m1", race);
  }
  fleet.add({.gains = {{"fast", 10}}});  // without draws
  EXPECT_EQ(only_row(fleet.aggregated()).variant, "fast");
  const Aggregate aggregate = fleet.aggregated({.by = By::energy});
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.variant, "cool");
  EXPECT_NEAR(variant_of(row, "cool").gain_pct.median, 90, 1e-4);
  EXPECT_NEAR(variant_of(row, "fast").gain_pct.median, -12, 1e-4);
  EXPECT_THAT(reasons(row), ElementsAre("m1 no-power"));
  EXPECT_EQ(to_tuning(aggregate).cards[0].rows[0].by, "mhw");
}

TEST(Aggregate, GainsOfTheMetricEnergyAreTakenAsTheyAre) {
  Fleet fleet;
  fleet.subject.metric = "energy";
  fleet.add(3, {.gains = {{"u2", 4}}});
  EXPECT_EQ(variant_of(only_row(fleet.aggregated({.by = By::energy})), "u2").gain_pct.median, 4);
}

// ---- voices

TEST(Aggregate, NoMachineCountsMoreThanOnce) {
  Fleet fleet;
  fleet.add(1000, {.machine = "loud", .gains = {{"u2", -3}, {"u4", 9}}});
  for (const char* machine : {"a", "b"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 3}, {"u4", -1}}});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.variant, "u2");
  EXPECT_EQ(variant_of(row, "u2").gain_pct.median, 3);
  EXPECT_EQ(variant_of(row, "u4").gain_pct.median, -1);
  EXPECT_EQ(row.machines, 3);
}

TEST(Aggregate, ARaceOfCardsUnderSeveralCapsIsOneRace) {
  Fleet fleet;
  for (std::uint64_t epoch = 1; epoch <= 5; ++epoch)
    for (const float cap : {100.F, 71.F, 50.F})
      fleet.add({.machine = "a",
                 .slot = fmt::format("slot-{}", cap),
                 .epoch = epoch,
                 .gains = {{"u2", 3}},
                 .power_limit_w = cap});
  fleet.add({.machine = "a", .slot = "slot-50", .epoch = 9, .gains = {{"u2", 3}}, .power_limit_w = 50});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  const VariantEvidence& u2 = variant_of(row, "u2");
  EXPECT_EQ(row.races, 6);
  EXPECT_EQ(u2.gain_pct.races, 6);
  EXPECT_EQ(u2.gain_pct.samples, 16);
  ASSERT_EQ(u2.strata.size(), 3u);
  EXPECT_EQ(u2.strata[0].gain.races, 5);
  EXPECT_EQ(u2.strata[2].gain.races, 6);
}

TEST(Aggregate, MachinesWithOneCardAreOneVoice) {
  Fleet fleet;
  for (const char* clone : {"c1", "c2", "c3", "c4"})
    fleet.add(5, {.machine = clone, .slot = "box", .gains = {{"u2", -3}, {"u4", 9}}});
  for (const char* machine : {"a", "b"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 3}, {"u4", -1}}});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.machines, 3);
  EXPECT_EQ(row.variant, "u2");
  EXPECT_THAT(reasons(row), ElementsAre("c2 same-card", "c3 same-card", "c4 same-card"));
  EXPECT_THAT(row.set_aside[0].why, HasSubstr("slot box as c1 does"));
}

TEST(Aggregate, ACloneThatContradictsItsOriginalSilencesOnlyIt) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 3}}});
  fleet.add(3, {.machine = "z", .slot = "slot-a", .gains = {{"u2", -90}}});
  const Aggregate aggregate = fleet.aggregated();
  const VariantEvidence& variant = variant_of(only_row(aggregate), "u2");
  EXPECT_EQ(variant.gain_pct.machines, 2);
  EXPECT_EQ(variant.standing_pct, 3);
}

TEST(Aggregate, AMachineThatClaimsAllSlotsTakesOneWithIt) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c", "d"}) {
    fleet.add(3, {.machine = machine, .gains = {{"u2", 3}}});
    fleet.add(3, {.machine = "z", .slot = std::string("slot-") + machine, .gains = {{"u2", -90}}});
  }
  const Aggregate aggregate = fleet.aggregated();
  EXPECT_EQ(only_row(aggregate).machines, 4);
  EXPECT_EQ(variant_of(only_row(aggregate), "u2").gain_pct.machines, 3);
}

TEST(Aggregate, PowerCapsAreWeighedAsTheCardsMachinesAreSpread) {
  Fleet fleet;
  for (int i = 0; i < 10; ++i) {
    const std::string machine = fmt::format("m{}", i);
    const bool capped = i < 5;
    // u2 gains under a cap and loses without; only one of those without has raced it.
    std::map<std::string, float> gains{{"u4", capped ? 4.F : 2.F}};
    if (capped || i == 9) gains["u2"] = capped ? 5.F : -2.F;
    fleet.add(4, {.machine = machine, .gains = gains, .power_limit_w = capped ? 71.F : 98.F});
  }
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  const VariantEvidence& u2 = variant_of(row, "u2");
  EXPECT_EQ(u2.gain_pct.median, 1.5);  // and not 5, the plain median
  EXPECT_EQ(u2.gain_pct.machines, 6);
  ASSERT_EQ(u2.strata.size(), 2u);
  EXPECT_EQ(u2.strata[0].name, "100 W");
  EXPECT_EQ(u2.strata[0].gain.median, -2);
  EXPECT_EQ(u2.strata[1].name, "71 W");
  EXPECT_EQ(u2.strata[1].gain.machines, 5);
  EXPECT_EQ(row.variant, "u4");
}

TEST(Aggregate, StrataAreStepsOfWatts) {
  using internal::stratum_name;
  using internal::stratum_of;
  const std::pair<float, std::string_view> steps[] = {
      {400, "400 W"}, {399.6F, "400 W"}, {575, "560 W"}, {600, "600 W"},        {75, "75 W"},
      {70, "71 W"},   {15, "15 W"},      {2, "2 W"},     {100'000, "100000 W"}, {1000, "1000 W"}};
  for (const auto& [watts, name] : steps) EXPECT_EQ(stratum_name(stratum_of(watts)), name) << watts;
  for (const float none : {absent, -5.F, 0.F, 1.F, 1e30F, INFINITY})
    EXPECT_EQ(stratum_name(stratum_of(none)), "unknown");
  // The rounded names are within a percent or so of the steps, and no two steps share one.
  std::set<std::string> names;
  for (int step = 12; step <= 200; ++step) {
    const std::string name = stratum_name(static_cast<internal::Stratum>(step));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_NEAR(std::stod(name), std::pow(10, step / 40.0), 0.015 * std::stod(name)) << step;
  }
}

/// As a race leaves it (furlong/race/report_data.cpp): the limit, and nothing about the default one.
record::RaceRecord plain_record(int number, const std::string& card_of, double base_rate) {
  record::RaceRecord record;
  record.id = fmt::format("01956a3c-8f00-7abc-8def-{:012x}", number);
  record.ts = fmt::format("2026-02-27T12:{:02}:{:02}Z", number / 60 % 60, number % 60);
  record.machine = card_of;
  record.slot = "slot-" + card_of;
  record.source = "src";
  record.card = "Card";
  record.silicon.hash = "00000000000000aa";
  record.backend = "cuda";
  record.program = "lottery";
  record.unit = "MH/s";
  record.agent = "0.1.0";
  record.epoch = fmt::format("{:016x}", number + 1);
  record.winner = "u2";
  record.verdict = record::Verdict::winner;
  record.base_rate = base_rate;
  record.rate = 1.03 * base_rate;
  record.gain_pct = 3;
  record.variants = {{.name = "base", .rate = base_rate}, {.name = "u2", .rate = 1.03 * base_rate}};
  return record;
}

void add_record(Fleet& fleet, const std::string& machine, const record::RaceRecord& record) {
  const auto race = decode(record);
  ASSERT_TRUE(race) << race.error().text();
  fleet.add(machine, *race);
}

TEST(Aggregate, RecordsOfRacesLieUnderTheirPowerLimit) {
  Fleet fleet;
  int number = 0;
  for (const char* machine : {"a", "b", "c", "d", "capped", "old"})
    for (int i = 0; i < 3; ++i) {
      const std::string name = machine;
      record::RaceRecord record = plain_record(++number, name, name == "capped" ? 70 : 100);
      record.power_w = 280;
      if (name != "old") record.power_limit_w = name == "capped" ? 300 : 450;
      add_record(fleet, name, record);
    }
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_TRUE(row.set_aside.empty()) << row.set_aside[0].why;
  EXPECT_EQ(row.machines, 6);
  std::vector<std::string> names;
  for (const Stratum& stratum : variant_of(row, "u2").strata) names.push_back(stratum.name);
  EXPECT_THAT(names, ElementsAre("450 W", "300 W", "unknown"));
}

TEST(Aggregate, RecordsOfCardsThatTellNoLimitAreOfOneUnknownCap) {
  Fleet fleet;
  int number = 0;
  for (const char* machine : {"a", "b", "c", "d"})
    for (int i = 0; i < 3; ++i) {
      record::RaceRecord record = plain_record(++number, machine, 100);
      record.power_pct = 20 * i + 40;  // a draw, whoever won: no cap
      add_record(fleet, machine, record);
    }
  for (int i = 0; i < 3; ++i) add_record(fleet, "odd", plain_record(++number, "odd", 150));
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_THAT(reasons(row), ElementsAre("odd base-disagrees"));
  ASSERT_EQ(variant_of(row, "u2").strata.size(), 1u);
  EXPECT_EQ(variant_of(row, "u2").strata[0].name, "unknown");
}

TEST(Aggregate, AVariantThatFewHaveRacedDoesNotSpeakForTheCard) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c", "d", "e"})
    fleet.add(3, {.machine = machine, .gains = {{"u2", 2}}});
  fleet.add(30, {.machine = "a", .gains = {{"u2", 2}, {"magic", 500}}});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.variant, "u2");
  EXPECT_THAT(row.candidates, ElementsAre("u2", "base"));
  EXPECT_EQ(variant_of(row, "magic").gain_pct.median, 500);
  EXPECT_THAT(row.why, HasSubstr("magic shows +500.00%, but on 1 of 5 machines"));
}

// ---- set aside

TEST(Aggregate, RatesAboveTheCardsCeilingAreSetAside) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"})
    fleet.add(3, {.machine = machine, .gains = {{"u2", 3}, {"u4", 2}}, .ceiling = 120});
  // Its own ceiling does not help it.
  fleet.add(3, {.machine = "liar", .gains = {{"u4", 60}, {"u2", 3}}, .ceiling = 1000});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_THAT(reasons(row), ElementsAre("liar above-ceiling"));
  EXPECT_THAT(row.set_aside[0].why,
              HasSubstr("u4 160 MH/s at unknown power, over the card's ceiling of 120"));
  EXPECT_EQ(row.set_aside[0].races, 3);
  EXPECT_EQ(variant_of(row, "u4").gain_pct.machines, 3);
  EXPECT_EQ(variant_of(row, "u2").gain_pct.machines, 4);
}

TEST(Aggregate, ALowCeilingOfAFewSetsNothingAside) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 3}}});
  for (const char* machine : {"y", "z"})
    fleet.add(3, {.machine = machine, .gains = {{"u2", -50}}, .ceiling = 1});
  EXPECT_TRUE(only_row(fleet.aggregated()).set_aside.empty());
}

TEST(Aggregate, ABaseThatTheMajorityContradictsIsSetAside) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c", "d"})
    fleet.add(3, {.machine = machine, .gains = {{"u2", 3}}, .base_rate = machine[0] == 'a' ? 103.F : 100.F});
  fleet.add(3, {.machine = "odd", .gains = {{"u2", 30}}, .base_rate = 150});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_THAT(reasons(row), ElementsAre("odd base-disagrees"));
  EXPECT_THAT(row.set_aside[0].why,
              HasSubstr("base 150 MH/s at unknown power, its peers there 100 MH/s: 4 of 5"));
  EXPECT_EQ(row.machines, 4);
  EXPECT_EQ(variant_of(row, "u2").gain_pct.machines, 4);
}

TEST(Aggregate, TwoMachinesCannotSayWhichOfThemIsWrong) {
  Fleet fleet;
  fleet.add(3, {.machine = "a", .gains = {{"u2", 3}}, .base_rate = 100});
  fleet.add(3, {.machine = "b", .gains = {{"u2", 3}}, .base_rate = 300});
  EXPECT_TRUE(only_row(fleet.aggregated()).set_aside.empty());
}

TEST(Aggregate, PowerExplainsADifferenceOfBases) {
  Fleet fleet;
  for (int i = 0; i < 9; ++i)
    fleet.add(3, {.machine = fmt::format("m{}", i),
                  .gains = {{"u2", 3}},
                  .base_rate = i < 6 ? 100.F : 65.F,
                  .power_limit_w = i < 6 ? 100.F : 60.F});
  EXPECT_TRUE(only_row(fleet.aggregated()).set_aside.empty());
  // More rate with less power: nothing explains that.
  fleet.add(3, {.machine = "odd", .gains = {{"u2", 3}}, .base_rate = 130, .power_limit_w = 60});
  EXPECT_THAT(reasons(only_row(fleet.aggregated())), ElementsAre("odd base-disagrees"));
}

TEST(Aggregate, AWrongBaseUnderALowCapIsFoundByItsPeersThereAndItsGains) {
  Fleet fleet;
  for (int i = 0; i < 12; ++i) {
    const bool capped = i % 4 == 0;  // three of twelve
    fleet.add(3, {.machine = fmt::format("m{:02}", i),
                  .gains = {{"u2", 3}, {"u4", capped ? 14.F : -2.F}, {"u8", -6}},
                  .base_rate = capped ? 75.F : 100.F,
                  .power_limit_w = capped ? 50.F : 100.F});
  }
  fleet.add(3, {.machine = "odd",
                .gains = {{"u2", 44}, {"u4", 60}, {"u8", 32}},
                .base_rate = 54,
                .power_limit_w = 50});
  // A slower card alone is only slow: its gains are as others'.
  fleet.add(3, {.machine = "slow",
                .gains = {{"u2", 3}, {"u4", 14}, {"u8", -6}},
                .base_rate = 59,
                .power_limit_w = 50});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_THAT(reasons(row), ElementsAre("odd base-disagrees"));
  EXPECT_THAT(
      row.set_aside[0].why,
      HasSubstr("base 54 MH/s at 50 W of power, its peers there 75 MH/s: 3 of 5 voices under this cap "
                "contradict it, and its gains are +40% off"));
}

TEST(Aggregate, NamesThatAManifestWouldRefuseAreSetAside) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"../../etc", 50}, {"u2", 2}}});
  const Aggregate aggregate = fleet.aggregated();
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.variant, "u2");
  EXPECT_THAT(reasons(row), ElementsAre(" name"));
  EXPECT_TRUE(check_tuning_names(to_tuning(aggregate), "tuning"));
  fleet.subject.program = "rm -rf";
  fleet.add(3, {.gains = {{"u2", 2}}});
  const Aggregate both = fleet.aggregated();
  EXPECT_TRUE(check_tuning_names(to_tuning(both), "tuning"));
  ASSERT_EQ(both.cards.at(0).rows.size(), 2u);
  EXPECT_EQ(both.cards[0].rows[1].choice, Choice::none);
}

TEST(Aggregate, AFloodOfOneMachineKeepsItsNewest) {
  Fleet fleet;
  internal::SubjectData data;
  internal::MachineReader reader({.words = 10, .machines = 3, .base = 1});
  reader.begin(internal::Quantity::recorded, data);
  const std::vector<PackedGain> old{{.variant = 1, .gain_pct = 0, .rate = 100},
                                    {.variant = 2, .gain_pct = 9, .rate = 109}};
  std::vector<PackedGain> now = old;
  now[1].gain_pct = 1;
  RaceRow row{.machine = 1};
  row.has_epoch = true;
  row.slot = 3;
  const std::size_t races = internal::most_values / 2;
  for (std::size_t i = 0; i < 3 * races; ++i) {
    row.epoch = i;
    row.gains = i < 2 * races ? old : now;
    reader.add(row);
  }
  reader.end();
  ASSERT_EQ(data.machines.size(), 1u);
  EXPECT_EQ(data.machines[0].counted, races);
  EXPECT_EQ(data.machines[0].flooded, 2 * races);
  ASSERT_EQ(data.cells.size(), 2u);
  EXPECT_EQ(data.cells[0].samples + data.cells[1].samples, 2 * races);
  for (const auto& cell : data.cells) EXPECT_EQ(cell.gain, cell.variant == 0 ? 0 : 1);
}

// ---- cards

TEST(Aggregate, LabelsKeysAndAliases) {
  Fleet fleet;
  fleet.label = "NVIDIA_GeForce_RTX_5090";
  for (const char* machine : {"a", "b"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}});
  fleet.label = "GeForce_RTX_5090";
  fleet.add(30, {.machine = "c", .gains = {{"u2", 1}}});
  Aggregate aggregate = fleet.aggregated();
  ASSERT_EQ(aggregate.cards.size(), 1u);
  EXPECT_EQ(aggregate.cards[0].key, "NVIDIA_GeForce_RTX_5090");
  EXPECT_THAT(aggregate.cards[0].aliases, ElementsAre("GeForce_RTX_5090"));
  // Another silicon under the same label.
  fleet.label = "NVIDIA_GeForce_RTX_5090";
  fleet.subject.silicon = "00000000000000bb";
  for (const char* machine : {"d", "e"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}});
  aggregate = fleet.aggregated();
  ASSERT_EQ(aggregate.cards.size(), 2u);
  EXPECT_EQ(aggregate.cards[0].key, "NVIDIA_GeForce_RTX_5090@00000000000000aa");
  EXPECT_EQ(aggregate.cards[1].key, "NVIDIA_GeForce_RTX_5090@00000000000000bb");
  const auto open = fleet.store();
  EXPECT_TRUE(explain(open, "GeForce_RTX_5090", {.until_us = the_end_us}));
  EXPECT_TRUE(explain(open, "00000000000000bb", {.until_us = the_end_us}));
  const auto both = explain(open, "NVIDIA_GeForce_RTX_5090", {.until_us = the_end_us});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().text(), HasSubstr("2 cards: say NVIDIA_GeForce_RTX_5090@00000000000000aa or"));
  const auto none = explain(open, "GeForce_RTX_509", {.until_us = the_end_us});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::invalid);
  EXPECT_THAT(none.error().text(), HasSubstr("GeForce_RTX_5090"));
}

TEST(Aggregate, ALabelThatReadsLikeAKeyTakesNoRow) {
  for (const char* label : {"Card@00000000000000bb", "Card@00000000000000aa", "Card@unknown"}) {
    SCOPED_TRACE(label);
    Fleet fleet;
    for (const char* machine : {"a", "b", "c", "g"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}});
    fleet.subject.silicon = "00000000000000bb";
    for (const char* machine : {"d", "e"}) fleet.add(3, {.machine = machine, .gains = {{"u4", 4}}});
    fleet.subject.silicon = "label:Card";
    fleet.add(3, {.machine = "f", .gains = {{"u8", 4}}});
    fleet.subject.silicon = "00000000000000cc";
    fleet.label = label;
    for (const char* machine : {"liar", "liar2", "liar3"})
      fleet.add(90, {.machine = machine, .gains = {{"u9", 9}}});
    const Aggregate aggregate = fleet.aggregated();
    std::set<std::string> keys;
    for (const CardEvidence& card : aggregate.cards) keys.insert(card.key);
    EXPECT_THAT(keys,
                ::testing::UnorderedElementsAre("Card", "Card@00000000000000bb",
                                                std::string(label) + "@00000000000000cc", "Card@unknown"));
    const record::Tuning tuning = to_tuning(aggregate);
    const std::pair<const char*, const char*> honest[] = {{"00000000000000aa", "u2"},
                                                          {"00000000000000bb", "u4"}};
    for (const auto& [silicon, variant] : honest) {
      const auto match = record::find_tuning(tuning, {.silicon = {.hash = silicon}, .label = "Card"});
      ASSERT_NE(match.row, nullptr);
      EXPECT_EQ(match.row->variant, variant);
    }
  }
}

TEST(Aggregate, ACardsNameMayHoldAnAt) {
  Fleet fleet;
  fleet.label = "Xeon_CPU_@_2.40GHz";
  fleet.add(3, {.machine = "a", .gains = {{"u2", 1}}});
  EXPECT_EQ(fleet.aggregated().cards.at(0).key, "Xeon_CPU_@_2.40GHz");
}

TEST(Aggregate, ALiarUnderACapDoesNotSpeakForThoseWhoHaveNotRaced) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c", "d"})
    fleet.add(3, {.machine = machine, .gains = {{"u4", 0.1F}}, .base_rate = 80, .power_limit_w = 300});
  for (const char* machine : {"e", "f", "g", "h", "i", "j"})
    fleet.add(4, {.machine = machine, .gains = {{"u2", 3}, {"u4", 0.1F}}, .power_limit_w = 450});
  fleet.add(3,
            {.machine = "liar", .gains = {{"u2", -90}, {"u4", 0.1F}}, .base_rate = 80, .power_limit_w = 300});
  const Aggregate aggregate = fleet.aggregated();
  EXPECT_EQ(variant_of(only_row(aggregate), "u2").standing_pct, 3);
  EXPECT_EQ(only_row(aggregate).variant, "u2");
}

TEST(Aggregate, AMadeUpSiliconRenamesNoCard) {
  for (const char* silicon : {"label:Card", "00000000000000ff", "0000000000000001"}) {
    SCOPED_TRACE(silicon);
    Fleet fleet;
    for (const char* machine : {"a", "b", "c"}) fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}});
    fleet.subject.silicon = silicon;
    for (const char* machine : {"a", "liar"}) fleet.add(90, {.machine = machine, .gains = {{"u9", 1}}});
    const Aggregate aggregate = fleet.aggregated();
    ASSERT_EQ(aggregate.cards.size(), 2u);
    const auto card = find_card(aggregate.cards, "Card");
    ASSERT_TRUE(card) << card.error().text();
    EXPECT_EQ(card->silicon.hash, "00000000000000aa");
    EXPECT_EQ(card->key, "Card");
    const std::string other = silicon[0] == 'l' ? "Card@unknown" : std::string("Card@") + silicon;
    ASSERT_TRUE(find_card(aggregate.cards, other));
    // A machine that tells no silicon gets the row of the many.
    const record::Tuning tuning = to_tuning(aggregate);  // the match points into it
    const auto match = record::find_tuning(tuning, {.silicon = {}, .label = "Card"});
    ASSERT_NE(match.row, nullptr);
    EXPECT_EQ(match.row->variant, "u2");
  }
}

TEST(Aggregate, CardsWithoutSiliconAreFoundByALabelThatNoneHolds) {
  Fleet fleet;
  fleet.add(3, {.machine = "a", .gains = {{"u2", 1}}});
  fleet.subject.silicon = "label:Card";
  fleet.add(3, {.machine = "b", .gains = {{"u9", 1}}});
  const Aggregate aggregate = fleet.aggregated();
  ASSERT_EQ(aggregate.cards.size(), 2u);
  EXPECT_EQ(aggregate.cards[0].key, "Card@00000000000000aa");
  EXPECT_EQ(aggregate.cards[1].key, "Card@unknown");
  const record::Tuning tuning = to_tuning(aggregate);  // the match points into it
  const auto match = record::find_tuning(tuning, {.silicon = {}, .label = "Card"});
  ASSERT_NE(match.row, nullptr);
  EXPECT_EQ(match.row->variant, "u9");
}

TEST(Aggregate, CardsWithoutSiliconAreCalledByTheirLabel) {
  Fleet fleet;
  fleet.subject.silicon = "label:Old";
  fleet.label = "Old";
  fleet.add(3, {.gains = {{"u2", 1}}});
  const record::Tuning tuning = to_tuning(fleet.aggregated());
  ASSERT_EQ(tuning.cards.size(), 1u);
  EXPECT_EQ(tuning.cards[0].key, "Old");
  EXPECT_FALSE(tuning.cards[0].silicon);
}

TEST(Aggregate, ErrorsOfTheStoreComeAsTheyAre) {
  const auto gone =
      aggregate([]() -> Result<std::unique_ptr<Store>> { return fail(Code::unavailable, "gone"); }, {});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::unavailable);
  Fleet fleet;
  for (const char* program : {"p", "q", "r"}) {
    fleet.subject.program = program;
    fleet.add({.gains = {{"u2", 1}}});
  }
  const OpenStore good = fleet.store();
  int opened = 0;
  const auto half = aggregate(
      [&]() -> Result<std::unique_ptr<Store>> {
        if (opened++ == 0) return good();
        return fail(Code::timeout, "busy");
      },
      {.threads = 2});
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code(), Code::timeout);
}

TEST(Aggregate, OptionsOutOfRangeAreNamed) {
  const auto days = aggregate(Fleet().store(), {.window_days = 0});
  ASSERT_FALSE(days);
  EXPECT_EQ(days.error().code(), Code::invalid);
  EXPECT_THAT(days.error().text(), HasSubstr("the window in days is 0"));
  EXPECT_FALSE(aggregate(Fleet().store(), {.min_samples = 0}));
}

}  // namespace
}  // namespace furlong::fleet
