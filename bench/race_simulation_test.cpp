#include "bench/race_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace furlong::bench {
namespace {

// A recorded card with perfect windows: everything about a race on it is known.
Trace quiet_trace() {
  Trace trace;
  trace.scenario = "quiet";
  trace.kernels = kVariants;
  trace.heats.assign(30, std::vector<Trace::Window>(kVariants, Trace::Window{0.25, 0.26, 0.25, 0.3}));
  trace.launch_ms = 0.25;
  trace.first_launch_ms = 0.3;
  return trace;
}

TEST(RaceSimulation, SameSeedGivesTheSameRace) {
  const Scene scene{"s", nullptr, Shape::correlated, 0.003};
  for (const Rule rule :
       {Rule::race, Rule::classic, Rule::uncorrected, Rule::first_launch, Rule::unshuffled}) {
    const RaceOutcome a = simulate(scene, Field::mixed, rule, 7), b = simulate(scene, Field::mixed, rule, 7);
    EXPECT_EQ(a.winner, b.winner);
    EXPECT_EQ(a.paused_ms, b.paused_ms);
    EXPECT_EQ(a.misses, b.misses);
  }
}

TEST(RaceSimulation, QuietCardIsDecidedRightByBothRules) {
  const Trace trace = quiet_trace();
  const Scene scene{"quiet", &trace, Shape::white, 0};
  for (const Rule rule : {Rule::race, Rule::classic})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      EXPECT_FALSE(simulate(scene, Field::none_better, rule, seed).switched);
      EXPECT_TRUE(simulate(scene, Field::one_better, rule, seed).found);
      EXPECT_TRUE(simulate(scene, Field::three_tied, rule, seed).found);
      EXPECT_LE(simulate(scene, Field::mixed, rule, seed).regret, 0.002);  // ties and indifference
    }
}

TEST(RaceSimulation, PauseCountsEveryWindowAndItsDroppedLaunch) {
  const Trace trace = quiet_trace();
  const Scene scene{"quiet", &trace, Shape::white, 0};
  const RaceOutcome race = simulate(scene, Field::none_better, Rule::race, 1);
  // 20 launches of 0.25 ms and the first; 17 variants and base again in every heat.
  const double heat_ms = (kVariants + 1) * (5 + 0.3);
  const double heats = race.paused_ms / heat_ms;
  EXPECT_NEAR(heats, std::round(heats), 1e-9);
  EXPECT_GE(heats, 4);
  EXPECT_LE(heats, 6);
  EXPECT_EQ(simulate(scene, Field::none_better, Rule::classic, 1).paused_ms, 34000);
}

TEST(RaceSimulation, EveryShapeMakesNoiseOfItsSize) {
  // With no noise at all only shapes that are not scaled by it may disturb; none may move a race at true 0.
  for (const Shape shape : {Shape::white, Shape::correlated, Shape::ramp, Shape::steps, Shape::tails,
                            Shape::bad_base, Shape::uneven}) {
    const Scene scene{"s", nullptr, shape, 1e-6};
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      EXPECT_FALSE(simulate(scene, Field::none_better, Rule::race, seed).switched) << shape_name(shape);
  }
}

TEST(RaceSimulation, BadRulesAreBad) {
  const auto switches = [](Shape shape, double noise, Field field, Rule rule) {
    const Scene scene{"s", nullptr, shape, noise};
    int count = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) count += simulate(scene, field, rule, seed).switched;
    return count;
  };
  EXPECT_GE(switches(Shape::white, 0.003, Field::at_threshold, Rule::uncorrected), 10);
  EXPECT_GE(switches(Shape::white, 0.001, Field::none_better, Rule::first_launch), 30);
  EXPECT_GE(switches(Shape::ramp, 0.001, Field::at_threshold, Rule::unshuffled), 10);
  EXPECT_GE(switches(Shape::white, 0.003, Field::none_better, Rule::classic), 40);
  EXPECT_LE(switches(Shape::white, 0.003, Field::at_threshold, Rule::race), 2);
  EXPECT_LE(switches(Shape::ramp, 0.001, Field::at_threshold, Rule::race), 2);
}

}  // namespace
}  // namespace furlong::bench
