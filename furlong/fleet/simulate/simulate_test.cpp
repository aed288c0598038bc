#include "furlong/fleet/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "furlong/stats/centre.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t hour_us = 3'600'000'000;

SimulateOptions small() {
  SimulateOptions options;
  options.machines = 24;
  options.days = 1;
  return options;
}

SimulateOptions all_roles() {
  SimulateOptions options = small();
  options.machines = 30;
  options.liars = 3;
  options.clones = options.shared_cards = options.clocks_off = options.canaries = 2;
  options.regressions = 2;
  options.tuned_share = options.pinned_share = options.guest_share = 0.3;
  return options;
}

std::unique_ptr<Simulation> make(const SimulateOptions& options) {
  auto made = Simulation::make(options);
  EXPECT_TRUE(made) << (made ? "" : made.error().text());
  return made ? *std::move(made) : nullptr;
}

/// Every race, with the machine that ran it.
struct Raced {
  DecodedRace race;
  std::size_t machine;
  std::int64_t true_ts_us;
};
std::vector<Raced> run(Simulation& simulation) {
  std::vector<Raced> all;
  DecodedRace race;
  while (simulation.next(race)) all.push_back({race, simulation.machine(), simulation.true_ts_us()});
  return all;
}

const VariantGain* find(const DecodedRace& race, std::string_view name) {
  const auto at = std::ranges::find(race.variants, name, &VariantGain::name);
  return at == race.variants.end() ? nullptr : &*at;
}

std::string why(const SimulateOptions& options) {
  const auto made = Simulation::make(options);
  return made ? "" : made.error().text();
}

TEST(Simulate, EveryRecordIsOneThatTheHubTakesAndBothFormsTellTheSame) {
  const auto by_record = make(all_roles()), by_race = make(all_roles());
  record::RaceRecord record;
  DecodedRace race;
  std::size_t count = 0, pinned = 0;
  while (by_record->next(record)) {
    ASSERT_TRUE(by_race->next(race));
    ASSERT_EQ(by_race->machine(), by_record->machine());
    ASSERT_TRUE(record::check_complete(record));
    const auto decoded = decode(record);
    ASSERT_TRUE(decoded) << decoded.error().text();
    ASSERT_TRUE(*decoded == race) << record::to_line(record);
    const auto parsed = record::parse_record(record::to_line(record), "line");
    ASSERT_TRUE(parsed) << parsed.error().text();
    ASSERT_TRUE(*parsed == record) << record::to_line(record);
    EXPECT_EQ(record.machine, by_record->machines()[by_record->machine()].id);
    ++count;
    pinned += record.pinned;
  }
  EXPECT_FALSE(by_race->next(race));
  EXPECT_GT(count, 600u);
  EXPECT_GT(pinned, 60u);
}

TEST(Simulate, TheSameSeedGivesTheSameFleetAndAnotherSeedAnother) {
  const auto one = make(all_roles()), two = make(all_roles());
  SimulateOptions other_seed = all_roles();
  other_seed.seed = 2;
  const auto other = make(other_seed);
  EXPECT_EQ(one->machines().front().id, two->machines().front().id);
  EXPECT_NE(one->machines().front().id, other->machines().front().id);
  EXPECT_EQ(truth_text(*one), truth_text(*two));
  EXPECT_NE(truth_text(*one), truth_text(*other));
  const auto races = run(*one), again = run(*two);
  ASSERT_EQ(races.size(), again.size());
  std::set<RecordId> ids;
  for (std::size_t i = 0; i < races.size(); ++i) {
    ASSERT_TRUE(races[i].race == again[i].race);
    ids.insert(races[i].race.id);
  }
  EXPECT_EQ(ids.size(), races.size()) << "no id twice";
}

TEST(Simulate, RacesComeInTheOrderOfTheirTime) {
  const auto simulation = make(all_roles());
  const auto races = run(*simulation);
  for (std::size_t i = 1; i < races.size(); ++i) ASSERT_GE(races[i].true_ts_us, races[i - 1].true_ts_us);
  EXPECT_GE(races.front().true_ts_us, simulation->options().from_us);
  EXPECT_LT(races.back().true_ts_us, simulation->options().from_us + 24 * hour_us);
  EXPECT_DOUBLE_EQ(simulation->progress(), 1);
}

TEST(Simulate, MediansOverMachinesTellTheTruth) {
  SimulateOptions options;
  options.machines = 60;
  options.days = 5;
  options.cards = {"NVIDIA_H200", "NVIDIA_GeForce_RTX_4090"};
  options.short_budget_share = 0;
  const auto simulation = make(options);
  const Truth truth = simulation->truth();
  // By subject, cap and variant: gains of all races.
  std::map<Subject, std::map<int, std::map<std::string, std::vector<double>>>> gains;
  std::size_t in = 0, intervals = 0;
  for (const Raced& each : run(*simulation)) {
    const int cap = simulation->machines()[each.machine].cap_pct;
    const TruthRow* row = truth.find(each.race.subject)->at(cap);
    ASSERT_NE(row, nullptr);
    for (const VariantGain& variant : each.race.variants) {
      if (std::isnan(variant.gain_pct)) continue;
      gains[each.race.subject][cap][variant.name].push_back(variant.gain_pct);
      if (std::isnan(variant.half_pct) || variant.exit == Exit::duplicate) continue;
      const auto is = std::ranges::find(row->gains, variant.name, [](const auto& g) { return g.first; });
      ++intervals;
      in += std::abs(is->second - variant.gain_pct) <= variant.half_pct;
    }
  }
  int compared = 0;
  double sum_off = 0;
  for (const auto& [subject, caps] : gains)
    for (const auto& [cap, variants] : caps)
      for (const auto& [name, of_variant] : variants) {
        if (of_variant.size() < 12) continue;
        const TruthRow* row = truth.find(subject)->at(cap);
        const auto is = std::ranges::find(row->gains, name, [](const auto& g) { return g.first; });
        ASSERT_NE(is, row->gains.end()) << name;
        // A stratum has few cards, each with its own ways.
        const double off = stats::median(of_variant) - is->second;
        EXPECT_LT(std::abs(off), 0.5) << name << " " << subject.program_class << " " << cap;
        sum_off += off;
        ++compared;
      }
  EXPECT_GT(compared, 500);
  EXPECT_NEAR(sum_off / compared, 0, 0.02) << "noise takes no side";
  // The rest is how cards differ from their model.
  EXPECT_GT(static_cast<double>(in), 0.6 * static_cast<double>(intervals));
}

TEST(Simulate, TheBestLeadsByTheMarginOrNothingBeatsBase) {
  SimulateOptions options;
  options.machines = 90;
  const auto simulation = make(options);
  const Truth truth = simulation->truth();
  int dead_heats = 0;
  for (const TruthSubject& subject : truth.subjects) {
    ASSERT_FALSE(subject.caps.empty());
    for (const TruthRow& row : subject.caps) {
      dead_heats += row.best == "base";
      if (row.best == "base") {
        EXPECT_LE(row.gains.front().second, 0.5);
      } else {
        EXPECT_GE(row.lead_pct, options.margin_pct - 1e-9) << row.best;
      }
      EXPECT_EQ(subject.caps.front().cap_pct, 100);
    }
  }
  EXPECT_GT(dead_heats, 0);
  EXPECT_EQ(truth.subjects.size(), 9u * 9 + 7 * 3) << "nine models, seven of which race gemv";
  // One label over two kinds of silicon, and one kind of silicon under two labels.
  std::map<std::string, std::set<std::string>> silicon_of, labels_of;
  for (const SimulatedMachine& machine : simulation->machines()) {
    silicon_of[machine.label].insert(machine.silicon);
    labels_of[machine.silicon].insert(machine.label);
  }
  EXPECT_EQ(silicon_of["NVIDIA_GeForce_RTX_3060"].size(), 2u);
  EXPECT_TRUE(std::ranges::any_of(labels_of, [](const auto& each) { return each.second.size() == 2; }));
}

TEST(Simulate, WithoutNoiseGainsAreTheTruth) {
  SimulateOptions options = small();
  options.noise = 0;
  const auto simulation = make(options);
  const Truth truth = simulation->truth();
  for (const Raced& each : run(*simulation)) {
    const TruthRow* row = truth.find(each.race.subject)->at(simulation->machines()[each.machine].cap_pct);
    for (const auto& [name, gain] : row->gains)
      if (const VariantGain* variant = find(each.race, name);
          variant != nullptr && !std::isnan(variant->gain_pct)) {
        ASSERT_NEAR(variant->gain_pct, gain, 1e-4) << name;
      }
  }
}

TEST(Simulate, LiarsPraiseTheirFavourite) {
  SimulateOptions options = small();
  options.liars = 3;
  options.noise = 0;
  const auto simulation = make(options);
  const Truth truth = simulation->truth();
  std::map<SimulatedRole, int> seen;
  for (const Raced& each : run(*simulation)) {
    const SimulatedMachine& machine = simulation->machines()[each.machine];
    if (machine.role == SimulatedRole::honest || each.race.subject.program != "lottery") continue;
    const TruthRow* row = truth.find(each.race.subject)->at(machine.cap_pct);
    const TruthRow& any = row == nullptr ? truth.find(each.race.subject)->caps.front() : *row;
    const VariantGain* praised = find(each.race, machine.favourite);
    ASSERT_NE(praised, nullptr);
    const auto is = std::ranges::find(any.gains, machine.favourite, [](const auto& g) { return g.first; });
    ASSERT_NE(is, any.gains.end());
    switch (machine.role) {
      case SimulatedRole::inflates:
        if (std::isnan(praised->gain_pct)) continue;
        if (row != nullptr) {
          EXPECT_NEAR(praised->gain_pct, is->second + 11, 1.01);
        }
        break;
      case SimulatedRole::above_ceiling:
        EXPECT_GT(each.race.rate, each.race.ceiling);
        break;
      default:
        EXPECT_EQ(machine.role, SimulatedRole::wrong_base);
        EXPECT_GT(each.race.gain_pct, 30);
        EXPECT_LT(each.race.rate, each.race.ceiling);
    }
    ++seen[machine.role];
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Simulate, HonestRatesStayBelowTheCeiling) {
  const auto simulation = make(small());
  for (const Raced& each : run(*simulation))
    if (!each.race.pinned) {
      ASSERT_LT(each.race.rate, each.race.ceiling);
    }
}

TEST(Simulate, ClonesShareAKeyOrACard) {
  SimulateOptions options = small();
  options.clones = options.shared_cards = 2;
  const auto simulation = make(options);
  int keys = 0, cards = 0;
  for (std::size_t i = 0; i < simulation->machines().size(); ++i) {
    const SimulatedMachine& machine = simulation->machines()[i];
    EXPECT_EQ(simulation->key(i).public_key.id(), machine.id);
    if (!machine.of) continue;
    const SimulatedMachine& original = simulation->machines()[*machine.of];
    EXPECT_EQ(original.role, SimulatedRole::honest);
    if (machine.role == SimulatedRole::key_clone) {
      ++keys;
      EXPECT_EQ(machine.id, original.id);
      EXPECT_NE(machine.slots, original.slots);
    } else {
      ++cards;
      EXPECT_NE(machine.id, original.id);
      EXPECT_EQ(machine.slots, original.slots);
      EXPECT_EQ(machine.silicon, original.silicon);
    }
  }
  EXPECT_EQ(keys, 2);
  EXPECT_EQ(cards, 2);
}

TEST(Simulate, ClocksAreOffByHoursAndByYears) {
  SimulateOptions options = small();
  options.clocks_off = 2;
  const auto simulation = make(options);
  std::set<std::int64_t> offs;
  for (const Raced& each : run(*simulation)) {
    const std::int64_t off = simulation->machines()[each.machine].clock_off_us;
    EXPECT_NEAR(static_cast<double>(each.race.ts_us - each.true_ts_us), static_cast<double>(off), 1e6);
    offs.insert(std::abs(off));
  }
  ASSERT_EQ(offs.size(), 3u);
  EXPECT_EQ(*offs.begin(), 0);
  EXPECT_LT(*std::next(offs.begin()), 21 * hour_us);
  EXPECT_GT(*offs.rbegin(), 300 * 24 * hour_us);
}

TEST(Simulate, PlantedRegressionsBeginWhenTheyShould) {
  SimulateOptions options = small();
  options.machines = 12;
  options.days = 8;
  options.noise = 0;
  options.capped = false;
  options.cards = {"NVIDIA_H200", "NVIDIA_L40S"};
  options.planted = {{.card = "NVIDIA_H200",
                      .program = "lottery",
                      .variant = "u8",
                      .driver = "580.95.05",
                      .from_day = 4,
                      .loss_pct = 7},
                     {.card = "NVIDIA_L40S",
                      .program = "lottery",
                      .variant = "u2",
                      .driver = "",
                      .from_day = 4,
                      .loss_pct = 3}};
  const auto simulation = make(options);
  const Truth before = simulation->truth(options.from_us);
  int slower = 0, same = 0;
  for (const Raced& each : run(*simulation)) {
    const SimulatedMachine& machine = simulation->machines()[each.machine];
    if (each.race.subject.program != "lottery") continue;
    const bool h200 = machine.model == "NVIDIA_H200";
    const VariantGain* variant = find(each.race, h200 ? "u8" : "u2");
    ASSERT_NE(variant, nullptr);
    if (std::isnan(variant->gain_pct)) continue;
    const TruthRow* row = before.find(each.race.subject)->at(100);
    const double was =
        std::ranges::find(row->gains, variant->name, [](const auto& g) { return g.first; })->second;
    const bool late = each.true_ts_us >= options.from_us + 96 * hour_us;
    const bool holds = h200 ? each.race.driver == "580.95.05" : late;
    if (each.race.driver == "580.95.05" && h200) {
      EXPECT_TRUE(late);
    }
    const double loss = holds ? (h200 ? 0.93 : 0.97) : 1;
    EXPECT_NEAR(variant->gain_pct, 100 * ((1 + was / 100) * loss - 1), 1e-3);
    ++(holds ? slower : same);
  }
  EXPECT_GT(slower, 100);
  EXPECT_GT(same, 100);
  EXPECT_EQ(simulation->truth().regressions.size(), 2u);
}

TEST(Simulate, PinnedMachinesRaceOneTimeInTwenty) {
  SimulateOptions options = small();
  options.days = 10;
  options.pinned_share = 1;
  const auto simulation = make(options);
  const record::Tuning tuning = simulation->true_tuning();
  EXPECT_TRUE(record::parse_tuning(record::print(tuning), "tuning"));
  std::size_t pinned = 0, raced = 0;
  for (const Raced& each : run(*simulation)) {
    ++(each.race.pinned ? pinned : raced);
    if (!each.race.pinned) continue;
    EXPECT_EQ(each.race.verdict, record::Verdict::pinned);
    EXPECT_TRUE(std::isnan(each.race.gain_pct));
    EXPECT_EQ(each.race.winner, simulation->truth(options.from_us).find(each.race.subject)->overall.best);
  }
  EXPECT_NEAR(static_cast<double>(raced) / static_cast<double>(raced + pinned), 0.05, 0.01);
}

TEST(Simulate, MachinesObeyATuningFromThenOn) {
  const auto simulation = make(small());
  DecodedRace race;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(simulation->next(race));
    EXPECT_FALSE(race.pinned);
  }
  auto tuning = std::make_shared<record::Tuning>(simulation->true_tuning());
  for (record::TuningCard& card : tuning->cards)
    for (record::TuningRow& row : card.rows) row.variant = "u2";
  simulation->follow(tuning);
  int pinned = 0;
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(simulation->next(race));
    pinned += race.pinned && race.winner == "u2";
  }
  EXPECT_GT(pinned, 350);
  simulation->follow(nullptr);
  ASSERT_TRUE(simulation->next(race));
  EXPECT_FALSE(race.pinned);
}

TEST(Simulate, EveryKindOfFateIsThere) {
  SimulateOptions options = small();
  options.machines = 54;
  const auto simulation = make(options);
  std::map<Exit, int> exits;
  std::map<record::Verdict, int> verdicts;
  std::set<std::string> classes;
  std::size_t most = 0;
  for (const Raced& each : run(*simulation)) {
    ++verdicts[each.race.verdict];
    for (const VariantGain& variant : each.race.variants) ++exits[variant.exit];
    if (each.race.subject.program == "lottery") classes.insert(each.race.subject.program_class);
    EXPECT_EQ(each.race.epoch.empty(), each.race.subject.program == "gemv");
  }
  for (const SimulatedMachine& machine : simulation->machines()) most = std::max(most, machine.slots.size());
  for (const Exit exit :
       {Exit::stayed, Exit::compile, Exit::gate, Exit::eliminated, Exit::duplicate, Exit::budget})
    EXPECT_GT(exits[exit], 0) << exit_name(exit);
  for (const auto verdict :
       {record::Verdict::winner, record::Verdict::dead_heat, record::Verdict::out_of_budget})
    EXPECT_GT(verdicts[verdict], 0) << record::verdict_name(verdict);
  EXPECT_EQ(classes.size(), 9u);
  EXPECT_GE(most, 5u);
}

TEST(Simulate, ItsBeginningDoesNotDependOnItsLength) {
  SimulateOptions options = small(), century = small();
  century.days = 36'500;
  const auto two_days = make(options), all = make(century);
  DecodedRace race, other;
  std::size_t same = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(two_days->next(race));
    ASSERT_TRUE(all->next(other));
    same += race.id == other.id;
  }
  EXPECT_EQ(same, 20u);
}

TEST(Simulate, WhatIsWrongIsNamed) {
  SimulateOptions options = small();
  options.cards = {"NVIDIA_H20O"};
  EXPECT_NE(why(options).find("did you mean 'NVIDIA_H200'"), std::string::npos) << why(options);
  options = small();
  options.programs = {"gemv"};
  options.cards = {"Apple_M2_Max"};
  EXPECT_NE(why(options).find("none of these cards"), std::string::npos) << why(options);
  options = small();
  options.liars = 24;
  EXPECT_NE(why(options).find("24 liars"), std::string::npos) << why(options);
  options = small();
  options.days = 0;
  EXPECT_NE(why(options).find("days"), std::string::npos) << why(options);
  options = small();
  options.planted = {{.card = "NVIDIA_H200", .program = "lottery", .variant = "u3"}};
  EXPECT_NE(why(options).find("variant 'u3'"), std::string::npos) << why(options);
  options.planted = {{.card = "NVIDIA_H200", .program = "lottery", .variant = "u2", .driver = "1.0"}};
  EXPECT_NE(why(options).find("driver '1.0'"), std::string::npos) << why(options);
}

}  // namespace
}  // namespace furlong::fleet
