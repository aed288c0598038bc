// The plain rule, and the race for energy.
#include <cmath>

#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using testing::Stage;
using testing::variant;
using testing::winner_of;

TEST(Classic, TakesTheFastestBeyondTheMargin) {
  Stage stage;
  stage.options.classic = true;
  stage.options.rounds = 1;
  stage.options.keep_samples = false;
  stage.sim.timing.gain = {{"u2", 0.02}, {"u4", 0.01}};
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(outcome.verdict_word, "classic");
  EXPECT_EQ(winner_of(outcome), "u2");
  EXPECT_NEAR(variant(outcome, "u2").gain, 0.02, 0.002);
  EXPECT_EQ(outcome.heats.size(), 1u);
  // Each turn is 2 s: three of them.
  EXPECT_GE(outcome.paused_ms, 6000);
  EXPECT_LE(outcome.paused_ms, 8000);
}

TEST(Classic, KeepsBaseWithinTheMargin) {
  Stage stage;
  stage.options.classic = true;
  stage.sim.timing.gain = {{"u2", 0.003}};
  const Outcome outcome = stage.outcome("u2");
  EXPECT_EQ(outcome.winner, 0u);
  EXPECT_EQ(outcome.heats.size(), 3u) << "three rounds";
  EXPECT_NE(outcome.sentence.find("plain rule"), std::string::npos) << outcome.sentence;
}

TEST(Classic, IsFooledByDriftWhichIsWhyThereAreHeats) {
  // Base first, then ever slower or (here) faster clocks: the last in line wins.
  Stage stage;
  stage.options.classic = true;
  stage.options.rounds = 1;
  stage.sim.timing.ramp_per_s = -0.005;
  EXPECT_NE(stage.outcome("u2,u4").winner, 0u);
}

TEST(Classic, EndsAtTheBudget) {
  Stage stage;
  stage.options.classic = true;
  stage.options.budget_s = 5;
  stage.sim.timing.gain = {{"u2", 0.05}};
  const Outcome outcome = stage.outcome("u2,u4,u8");
  EXPECT_EQ(winner_of(outcome), "u2");
  EXPECT_FALSE(outcome.notes.empty());
  EXPECT_LE(outcome.total_ms, 8000);
}

TEST(Classic, SaysThatNoTurnFits) {
  Stage stage;
  stage.options.classic = true;
  stage.options.max_pause_ms = 100;  // a turn takes 2 s
  stage.sim.timing.gain = {{"u2", 0.05}};
  const Outcome outcome = stage.outcome("u2");
  EXPECT_EQ(outcome.verdict_word, "none");
  EXPECT_EQ(outcome.winner, 0u);
  EXPECT_TRUE(outcome.heats.empty());
  EXPECT_NE(outcome.sentence.find("nothing was timed"), std::string::npos) << outcome.sentence;
  EXPECT_FALSE(outcome.notes.empty());
}

TEST(Classic, GatesTheWinnerAgain) {
  Stage stage;
  stage.options.classic = true;
  stage.options.rounds = 1;
  stage.sim.timing.gain = {{"u2", 0.05}, {"u4", 0.03}};
  bool later = false;
  stage.context.progress = [&](const Progress& progress) { later |= progress.phase == Phase::second_gate; };
  stage.tamper["u2"] = [&](const testing::Call& call) {
    if (later) call.y[0] ^= 1;
  };
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(variant(outcome, "u2").exit, Exit::gate);
  EXPECT_EQ(winner_of(outcome), "u4");
}

TEST(Energy, FindsWhoNeedsTheLeastPerUnit) {
  // u2 is the fastest and draws the most; u4 does the same work for less.
  Stage stage;
  stage.options.metric = Metric::energy;
  stage.options.keep_samples = false;
  stage.sim.timing.noise = 0.0005;
  stage.sim.timing.gain = {{"u2", 0.03}};
  stage.sim.power_w = {{"*", 300}, {"u2", 340}, {"u4", 280}};
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(winner_of(outcome), "u4") << outcome.sentence;
  EXPECT_EQ(outcome.metric, Metric::energy);
  EXPECT_EQ(make_record(*stage.instance, outcome).metric, "energy")
      << "its gains are of another thing than rate";
  EXPECT_NE(outcome.sentence.find("work per joule"), std::string::npos) << outcome.sentence;
  ASSERT_TRUE(variant(outcome, "base").energy_j_per_unit);
  ASSERT_TRUE(variant(outcome, "u4").energy_j_per_unit);
  EXPECT_NEAR(*variant(outcome, "u4").energy_j_per_unit / *variant(outcome, "base").energy_j_per_unit,
              280.0 / 300, 0.01);
  EXPECT_NEAR(variant(outcome, "u4").power_w.value_or(0), 280, 5);
  EXPECT_TRUE(variant(outcome, "u4").gated);
}

TEST(Energy, NeedsACounter) {
  Stage stage;
  stage.open();
  testing::Wrapped blind(*stage.device);
  blind.hide_energy = true;
  stage.context.device = &blind;
  stage.options.metric = Metric::energy;
  const auto raced = stage.race("u2");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::unavailable);
  EXPECT_NE(raced.error().text().find("no energy counter"), std::string::npos) << raced.error().text();
}

TEST(Classic, SaysThatARoundWasNotFinished) {
  Stage stage;
  stage.options.classic = true;
  stage.options.rounds = 1;
  stage.options.max_pause_ms = 5000;
  const Outcome outcome = stage.outcome("u2,u4,u8");
  ASSERT_FALSE(outcome.notes.empty());
  EXPECT_NE(outcome.notes[0].find("round 1 was not finished"), std::string::npos) << outcome.notes[0];
  EXPECT_LE(outcome.paused_ms, 5000);
}

TEST(Energy, KeepsThePauseCapAndFitsItsHeats) {
  for (const bool capped : {true, false}) {
    Stage stage;
    stage.options.metric = Metric::energy;
    stage.options.energy_budget_s = capped ? 120 : 14;
    stage.options.max_pause_ms = capped ? 15'000 : 0;
    stage.sim.timing.noise = 0.0005;
    const Outcome outcome = stage.outcome("u2,u4");
    EXPECT_LE(outcome.paused_ms, capped ? 15'000 : 14'000 + 2000);
    int energy_heats = 0;
    for (const HeatRecord& heat : outcome.heats) energy_heats += !heat.energy_j_per_unit.empty();
    EXPECT_EQ(energy_heats, 1) << "8.4 s each";
  }
}

TEST(Energy, KeepsItsOwnBudget) {
  Stage stage;
  stage.options.metric = Metric::energy;
  stage.options.energy_budget_s = 20;
  stage.sim.timing.noise = 0.0005;
  stage.sim.power_w = {{"*", 300}, {"u2", 298}};
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(outcome.winner, 0u) << outcome.sentence;
  EXPECT_LE(outcome.total_ms, 60'000);
}

}  // namespace
}  // namespace furlong::race
