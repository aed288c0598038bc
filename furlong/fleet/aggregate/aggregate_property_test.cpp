// Random fleets: the aggregation against the plain one, against reordering and threads, and against a
// minority that reports anything.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "furlong/base/random.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/plain.h"
#include "furlong/fleet/aggregate/internal/testing.h"

namespace furlong::fleet {
namespace {

using testing::Fleet;
using testing::the_end_us;

float scattered(Random& random, double centre, double scale) {
  return static_cast<float>(centre + scale * random.normal());
}

/// A race as it may come: caps, drivers, gaps, floods of one epoch, failures, and sometimes nonsense.
DecodedRace random_race(Random& random, Fleet& fleet, const std::string& machine, bool odd) {
  testing::RaceSpec spec{.machine = machine};
  spec.slot = random.below(8) == 0 ? fmt::format("shared-{}", random.below(3))
                                   : fmt::format("slot-{}-{}", machine, random.below(2));
  spec.epoch = 1 + random.below(40);
  spec.ts_us = the_end_us - 1 - static_cast<std::int64_t>(random.below(9 * 86400)) * 1'000'000 -
               static_cast<std::int64_t>(random.below(1000));
  const double power = 60 + 10 * static_cast<double>(random.below(5));
  if (random.below(6) != 0) spec.power_limit_w = scattered(random, power, 1);
  spec.base_rate = scattered(random, odd ? 180 : 60 + 0.4 * power, 1);
  if (random.below(3) != 0) spec.ceiling = odd ? 1e6F : 125;
  const char* const names[] = {"u2", "u4", "u8", "ldg", "w4"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (random.below(5) != 0)
      spec.gains[names[i]] = scattered(random, odd ? 40 : static_cast<double>(i) - 2, 0.8);
  spec.winner = names[random.below(std::size(names))];
  spec.pinned = random.below(10) == 0;
  fleet.driver = fmt::format("580.{}", random.below(3));
  fleet.source = fmt::format("s{}", random.below(3));
  fleet.subject.program = random.below(3) == 0 ? "gemv" : "lottery";
  fleet.label = random.below(4) == 0 ? "Card_Ti" : "Card";
  DecodedRace race = fleet.race(spec);
  for (VariantGain& variant : race.variants) {
    if (random.below(40) == 0) variant.gain_pct = absent;
    if (random.below(40) == 0) variant.rate = absent;
    if (random.below(30) == 0) variant.exit = static_cast<Exit>(random.below(10));
    variant.fallback = random.below(50) == 0;
  }
  if (random.below(30) == 0) race.base_rate = race.variants[0].rate = absent;
  if (random.below(20) == 0) race.epoch.clear();
  return race;
}

Fleet random_fleet(Random& random) {
  Fleet fleet;
  const std::uint64_t machines = 1 + random.below(14);
  for (std::uint64_t i = 0; i < machines; ++i) {
    const bool odd = random.below(8) == 0;
    const std::uint64_t races = 1 + random.below(random.below(3) == 0 ? 60 : 8);
    for (std::uint64_t j = 0; j < races; ++j) {
      const std::string machine = fmt::format("m{}", i);
      fleet.add(machine, random_race(random, fleet, machine, odd));
    }
  }
  return fleet;
}

void expect_near(double a, double b, std::string_view what) {
  if (std::isnan(a) || std::isnan(b))
    EXPECT_EQ(std::isnan(a), std::isnan(b)) << what;
  else
    EXPECT_NEAR(a, b, 1e-6 * std::max({1.0, std::abs(a), std::abs(b)})) << what;
}

void expect_variant(const VariantEvidence& variant, const plain::Variant& plain) {
  SCOPED_TRACE(variant.name);
  expect_near(variant.gain_pct.median, plain.gain, "gain");
  expect_near(variant.standing_pct, plain.standing, "standing");
  expect_near(variant.rate.median, plain.rate, "rate");
  EXPECT_EQ(variant.gain_pct.samples, plain.samples);
  EXPECT_EQ(variant.gain_pct.machines, plain.machines);
  // A race whose cards lie under two caps is counted under each by both.
  EXPECT_EQ(variant.gain_pct.races, plain.races);
  if (variant.name == "base") return;
  ASSERT_EQ(variant.gain_pct.ci.has_value(), plain.ci.has_value());
  if (!plain.ci) return;
  expect_near(variant.gain_pct.ci->lo, plain.ci->first, "lo");
  expect_near(variant.gain_pct.ci->hi, plain.ci->second, "hi");
}

void expect_row(const RowEvidence& row, const plain::Row& plain) {
  SCOPED_TRACE(row.subject.program);
  std::set<std::pair<std::string, std::string>> set_aside;
  for (const SetAside& one : row.set_aside) set_aside.insert({one.machine, one.reason});
  EXPECT_EQ(set_aside, plain.set_aside);
  EXPECT_EQ(row.machines, plain.voices);
  std::size_t raced = 0;
  for (const VariantEvidence& variant : row.variants) {
    if (variant.gain_pct.samples == 0) continue;
    ++raced;
    const auto at = plain.variants.find(variant.name);
    ASSERT_NE(at, plain.variants.end()) << variant.name;
    expect_variant(variant, at->second);
  }
  EXPECT_EQ(raced, plain.variants.size());
  EXPECT_EQ(row.variant, plain.winner);
  EXPECT_EQ(row.candidates, plain.candidates);
}

TEST(AggregateProperty, AgreesWithThePlainOne) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Fleet fleet = random_fleet(random);
    const OpenStore open = fleet.store();
    const auto result = aggregate(open, {.until_us = the_end_us, .threads = 1});
    ASSERT_TRUE(result) << result.error().text();
    const auto store = open();
    const auto plain = plain::aggregate(**store, result->window);
    ASSERT_TRUE(plain);
    std::size_t rows = 0;
    for (const CardEvidence& card : result->cards)
      for (const RowEvidence& row : card.rows) {
        ++rows;
        ASSERT_TRUE(plain->contains(row.subject));
        expect_row(row, plain->at(row.subject));
      }
    EXPECT_EQ(rows, plain->size());
    if (HasFailure()) return;
  }
}

TEST(AggregateProperty, SameRacesSameBytes) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, "order");
    Fleet fleet = random_fleet(random);
    const std::string first = testing::text_of(fleet.aggregated({.threads = 1}));
    for (const unsigned threads : {1u, 2u, 7u}) {
      random.shuffle(std::span(fleet.races()));
      ASSERT_EQ(testing::text_of(fleet.aggregated({.threads = threads})), first);
    }
  }
}

// ---- a minority that reports anything

/// What one honest machine sees of each variant; apart by more than a point, so that one is the best.
struct Truth {
  std::map<std::string, double> gains;
  std::string best;
};

Truth random_truth(Random& random) {
  Truth truth;
  double gain = -6;
  std::vector<std::string> names{"u2", "u4", "u8", "ldg", "w4"};
  random.shuffle(std::span(names));
  for (const std::string& name : names) {
    truth.gains[name] = gain;
    gain += 2 + 2 * random.uniform();
  }
  truth.best = names.back();
  return truth;
}

/// Honest machines: one box with one to three cards, one cap, all variants.
void add_honest(Random& random, Fleet& fleet, const Truth& truth, const std::string& machine) {
  const double power = 60 + 10 * static_cast<double>(random.below(5));
  const std::uint64_t slots = 1 + random.below(3);
  for (std::uint64_t i = 0; i < 3 + random.below(6); ++i) {
    testing::RaceSpec spec{.machine = machine, .slot = fmt::format("slot-{}-{}", machine, i % slots)};
    spec.power_limit_w = static_cast<float>(power);
    spec.base_rate = scattered(random, 100 * (0.4 + 0.6 * power / 100), 0.8);
    if (random.below(2) == 0) spec.ceiling = 300;
    for (const auto& [name, gain] : truth.gains) spec.gains[name] = scattered(random, gain, 0.1);
    fleet.add(spec);
  }
}

/// Anything at all, shaped by what a liar could want: to push one variant, or a new one; under one cap or
/// many; under slots of others; with low or high ceilings; with rates of others or absurd ones; few races or
/// many.
void add_liar(Random& random, Fleet& fleet, const Truth& truth, const std::string& machine,
              std::uint64_t plan) {
  Random shared(plan);  // what the liars agreed on
  const bool invent = shared.below(2) == 0, same_cap = shared.below(2) == 0, steal = shared.below(2) == 0;
  const bool one_base = shared.below(2) == 0, low_ceiling = shared.below(2) == 0;
  const double base = shared.below(2) == 0 ? 100 : 50 + 400 * shared.uniform();
  const double cap = 60 + 10 * static_cast<double>(shared.below(5));
  const std::uint64_t victim = random.below(12);
  for (std::uint64_t i = 0; i < 3 + random.below(12); ++i) {
    testing::RaceSpec spec{.machine = machine};
    if (steal)  // one victim's, or everybody's
      spec.slot = fmt::format("slot-h{:02}-{}", shared.below(2) == 0 ? victim : i, random.below(2));
    spec.power_limit_w = same_cap ? static_cast<float>(cap) : static_cast<float>(random.below(120));
    spec.base_rate = one_base ? static_cast<float>(base) : scattered(random, 100, 30);
    spec.ceiling = low_ceiling ? 1 : 1e9F;
    for (const auto& [name, gain] : truth.gains)
      spec.gains[name] = name == truth.best ? -90.F : static_cast<float>(1000 * random.uniform());
    if (invent) spec.gains["magic"] = 1e6F;
    if (random.below(8) == 0) spec.gains.clear();
    fleet.add(spec);
  }
}

TEST(AggregateProperty, APoisonedMinorityDoesNotChangeTheWinner) {
  int pinned = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, "poison");
    const Truth truth = random_truth(random);
    Fleet fleet;
    const std::uint64_t honest = 2 + random.below(8);
    for (std::uint64_t i = 0; i < honest; ++i) add_honest(random, fleet, truth, fmt::format("h{:02}", i));
    AggregateOptions options{.stable_races = 3, .stable_machines = 2};
    const Aggregate clean = fleet.aggregated(options);
    const RowEvidence before = testing::only_row(clean);
    ASSERT_EQ(before.variant, truth.best);

    ASSERT_TRUE(before.set_aside.empty()) << before.set_aside[0].why;
    const std::uint64_t liars = 1 + random.below(honest - 1);
    const std::uint64_t plan = random.next();
    for (std::uint64_t i = 0; i < liars; ++i)
      add_liar(random, fleet, truth, fmt::format("{}{:02}", random.below(2) == 0 ? "a" : "z", i), plan);
    const RowEvidence after = testing::only_row(fleet.aggregated(options));
    EXPECT_EQ(after.variant, truth.best) << after.why << " (" << honest << " honest, " << liars << " liars)";
    // No honest machine is set aside for what others say; it may be joined with one that claims its card.
    for (const SetAside& one : after.set_aside)
      if (one.machine.starts_with("h") && one.reason != "same-card")
        ADD_FAILURE() << one.machine << ' ' << one.reason << ": " << one.why;
    if (HasFailure()) return;
    // They may keep it from being pinned anew, but what is pinned stays.
    if (before.choice != Choice::pinned_by_stability) continue;
    ++pinned;
    options.previous = to_tuning(clean);
    const RowEvidence still = testing::only_row(fleet.aggregated(options));
    EXPECT_EQ(still.variant, truth.best) << still.why;
    EXPECT_EQ(still.choice, Choice::pinned_by_stability) << still.why;
    if (HasFailure()) return;
  }
  EXPECT_GT(pinned, 150);
}

TEST(AggregateProperty, ABackEndOfAMinorityDoesNotTakeTheRow) {
  int without_majority = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, "back ends");
    const Truth truth = random_truth(random);
    Fleet fleet;
    std::map<std::string, std::uint64_t> machines;
    const std::uint64_t honest = 2 + random.below(8);
    for (std::uint64_t i = 0; i < honest; ++i) {
      const std::uint64_t has = random.below(3);
      for (const char* backend : {"cuda", "opencl"}) {
        if (has == (backend == std::string_view("cuda") ? 0u : 1u)) continue;
        fleet.subject.backend = backend;
        ++machines[backend];
        add_honest(random, fleet, truth, fmt::format("h{:02}", i));
      }
    }
    // Fewer than the machines of the honest ones' commonest back end, with one of their own.
    const std::uint64_t most = std::max(machines["cuda"], machines["opencl"]);
    fleet.subject.backend = "x";
    const std::uint64_t liars = random.below(most), plan = random.next();
    for (std::uint64_t i = 0; i < liars; ++i) add_liar(random, fleet, truth, fmt::format("z{:02}", i), plan);
    without_majority += 2 * most <= honest + liars;
    const record::Tuning tuning = to_tuning(fleet.aggregated());
    ASSERT_EQ(tuning.cards.size(), 1u);
    ASSERT_EQ(tuning.cards[0].rows.size(), 1u);
    EXPECT_NE(tuning.cards[0].rows[0].backend, "x");
    EXPECT_EQ(tuning.cards[0].rows[0].variant, truth.best);
    if (HasFailure()) return;
  }
  EXPECT_GT(without_majority, 30);
}

}  // namespace
}  // namespace furlong::fleet
