#include "furlong/fleet/aggregate/pin_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/random.h"
#include "furlong/fleet/aggregate/internal/testing.h"

namespace furlong::fleet {
namespace {

using testing::Fleet;
using testing::the_end_us;

constexpr std::int64_t since_us = the_end_us - 8 * testing::day_us;

record::Tuning pinning(const std::string& variant, const std::string& more = "") {
  auto tuning = record::parse_tuning(R"({"schema":1,"cards":{"Card":{"program":"lottery","variant":")" +
                                         variant + R"(","race":false)" + more + "}}}",
                                     "tuning");
  EXPECT_TRUE(tuning) << tuning.error().text();
  return *tuning;
}

/// Each machine: `before` races that u2 wins, then pinned runs of u8 and one race in twenty.
struct Trial {
  int machines = 1, before = 60, after = 10;
  double u2_pct = 3, u8_pct = -10, scatter_pct = 0.3;
};

Fleet on_trial(Random& random, const Trial& trial) {
  Fleet fleet;
  for (int machine = 0; machine < trial.machines; ++machine)
    for (int i = 0; i < trial.before + 20 * trial.after; ++i) {
      const bool after = i >= trial.before;
      const int number = after ? i - trial.before : i - trial.before - 1;
      testing::RaceSpec spec{.machine = fmt::format("c{}", machine), .power_limit_w = 450, .winner = "u2"};
      spec.ts_us = since_us + number * 600'000'000LL + machine;
      if (after && number % 20 != 0) {
        spec.pinned = true;
        spec.winner = "u8";
      } else {
        const auto gain = [&](double pct) {
          return static_cast<float>(pct + trial.scatter_pct * random.normal());
        };
        spec.gains = {{"u2", gain(trial.u2_pct)}, {"u8", gain(trial.u8_pct)}};
      }
      fleet.add(spec);
    }
  return fleet;
}

PinCheck checked(const Fleet& fleet, const record::Tuning& tuning, std::vector<std::string> machines,
                 PinCheckOptions options = {}) {
  options.machines = std::move(machines);
  options.since_us = since_us;
  options.threads = 1;
  auto result = check_pins(fleet.store(), tuning, options);
  EXPECT_TRUE(result) << result.error().text();
  return result ? *std::move(result) : PinCheck{};
}

TEST(PinCheck, APinnedVariantSlowerThanBaseIsFound) {
  for (const int machines : {1, 2, 4, 12}) {
    SCOPED_TRACE(machines);
    Random random(1);
    std::vector<std::string> names;
    for (int i = 0; i < machines; ++i) names.push_back(fmt::format("c{}", i));
    // u2 is no better than base here, so that base alone condemns the pin.
    const Fleet fleet = on_trial(random, {.machines = machines, .u2_pct = 0});
    const PinCheck check = checked(fleet, pinning("u8"), names);
    ASSERT_EQ(check.slow.size(), 1u);
    const SlowPin& slow = check.slow[0];
    EXPECT_EQ(slow.card, "Card");
    EXPECT_EQ(slow.variant, "u8");
    EXPECT_NEAR(slow.gain_pct.median, -10, 0.5);
    EXPECT_EQ(slow.gain_pct.machines, machines);
    EXPECT_EQ(slow.gain_pct.samples, 10 * machines);
    EXPECT_GT(slow.behind_pct, 5);
    EXPECT_TRUE(checked(fleet, pinning("u2"), names).slow.empty());
    EXPECT_TRUE(checked(fleet, pinning("base"), names).slow.empty());
  }
}

TEST(PinCheck, OrThanWhatWasChosenBefore) {
  Random random(2);
  const Fleet fleet = on_trial(random, {.u2_pct = 6, .u8_pct = 1});
  const PinCheck check = checked(fleet, pinning("u8"), {"c0"});
  ASSERT_EQ(check.slow.size(), 1u);
  EXPECT_EQ(check.slow[0].chosen, "u2");
  EXPECT_NEAR(check.slow[0].chosen_gain_pct.median, 6, 0.3);
  EXPECT_NEAR(check.slow[0].behind_pct, 5, 1);
  EXPECT_EQ(checked(fleet, pinning("base"), {"c0"}).slow.size(), 1u) << "base is a pin like others";
  EXPECT_TRUE(checked(fleet, pinning("u2"), {"c0"}).slow.empty());
  EXPECT_TRUE(checked(fleet, pinning("u8"), {"c0"}, {.threshold_pct = 7}).slow.empty());
}

TEST(PinCheck, OnlyWhatThePinHoldsForAndOnlyTheseMachines) {
  Random random(3);
  Fleet fleet = on_trial(random, {});
  EXPECT_EQ(checked(fleet, pinning("u8"), {"c0"}).judged, 1);
  EXPECT_EQ(checked(fleet, pinning("u8"), {"c1"}).judged, 0) << "another's races";
  EXPECT_EQ(checked(fleet, pinning("u8"), {}).judged, 0);
  EXPECT_EQ(checked(fleet, pinning("u8", R"(,"min_driver":"590.0")"), {"c0"}).judged, 0) << "an older driver";
  EXPECT_EQ(checked(fleet, pinning("never"), {"c0"}).judged, 0);
  record::Tuning tuning = pinning("u8");
  tuning.cards[0].rows[0].race = true;
  EXPECT_EQ(checked(fleet, tuning, {"c0"}).judged, 0) << "raced, not pinned";
  tuning = pinning("u8");
  tuning.cards[0].rows[0].program = "sort";
  EXPECT_EQ(checked(fleet, tuning, {"c0"}).judged, 0);
  tuning = pinning("u8");
  tuning.cards[0].key = "Other";
  EXPECT_EQ(checked(fleet, tuning, {"c0"}).judged, 0);
}

TEST(PinCheck, FewRacesAreNotJudged) {
  Random random(4);
  EXPECT_EQ(checked(on_trial(random, {.after = 7}), pinning("u8"), {"c0"}).judged, 0);
  EXPECT_EQ(checked(on_trial(random, {.after = 8}), pinning("u8"), {"c0"}).slow.size(), 1u);
}

TEST(PinCheck, NoiseIsSeldomFound) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t trials = 5;  // fifty times slower; the share is counted in the release build
#else
  constexpr std::uint64_t trials = 60;
#endif
  int found = 0;
  for (std::uint64_t seed = 1; seed <= trials; ++seed) {
    Random random(seed, "pins");
    const int machines = 1 + static_cast<int>(random.below(6));
    std::vector<std::string> names;
    for (int i = 0; i < machines; ++i) names.push_back(fmt::format("c{}", i));
    const Trial trial{.machines = machines, .before = 20, .u2_pct = 0, .u8_pct = 0, .scatter_pct = 1};
    found += !checked(on_trial(random, trial), pinning("u8"), names, {.threshold_pct = 0}).slow.empty();
  }
  EXPECT_LE(found, 4);
}

}  // namespace
}  // namespace furlong::fleet
