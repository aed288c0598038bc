// Whole races on a simulated card.
#include "furlong/race/race.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using testing::Stage;
using testing::variant;
using testing::winner_of;

TEST(Race, FindsTheFasterVariant) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.03}, {"c64", -0.05}};
  const Outcome outcome = stage.outcome();
  EXPECT_EQ(outcome.verdict, stats::Verdict::winner);
  EXPECT_EQ(outcome.verdict_word, "winner");
  EXPECT_EQ(winner_of(outcome), "u2");
  EXPECT_NEAR(variant(outcome, "u2").gain, 0.03, 0.005);
  EXPECT_GT(variant(outcome, "u2").low, 0.005);
  EXPECT_TRUE(variant(outcome, "u2").gated);
  EXPECT_EQ(variant(outcome, "c64").exit, Exit::eliminated);
  EXPECT_FALSE(variant(outcome, "c64").why.empty());
  EXPECT_NE(outcome.sentence.find("u2 beats base by"), std::string::npos) << outcome.sentence;
  ASSERT_TRUE(variant(outcome, "base").rate);
  EXPECT_NEAR(*variant(outcome, "base").rate, 4096 / 0.25e-3, 0.05 * 4096 / 0.25e-3);
  EXPECT_GT(*variant(outcome, "u2").rate, *variant(outcome, "base").rate);
}

TEST(Race, CallsEqualsADeadHeat) {
  Stage stage;
  const Outcome outcome = stage.outcome();
  EXPECT_EQ(outcome.verdict_word, "dead-heat");
  EXPECT_EQ(outcome.winner, 0u);
  EXPECT_NE(outcome.sentence.find("dead heat"), std::string::npos);
  for (const VariantOutcome& one : outcome.variants) {
    if (one.name != "base") {
      EXPECT_NE(one.exit, Exit::none) << one.name;
    }
  }
}

TEST(Race, OfTiedWinnersTakesTheSimplest) {
  Stage stage;
  stage.sim.timing.noise = 0.0005;
  stage.sim.timing.gain = {{"u2-c64", 0.02}, {"u2", 0.02}};
  const Outcome outcome = stage.outcome("u2-c64,u2");
  EXPECT_EQ(outcome.verdict_word, "winner");
  EXPECT_EQ(winner_of(outcome), "u2");
}

TEST(Race, GivesTheSameOutcomeForTheSameSeed) {
  const auto document = [](std::uint64_t seed) {
    Stage stage;
    stage.options.seed = seed;
    stage.sim.timing.gain = {{"u2", 0.02}};
    const Outcome outcome = stage.outcome();
    return json_line(to_json(*stage.instance, outcome, stage.options));
  };
  const std::string one = document(3);
  EXPECT_EQ(one, document(3));
  EXPECT_NE(one, document(4));
}

TEST(Race, TimesEveryVariantOncePerHeatAndBaseTwice) {
  Stage stage;
  const Outcome outcome = stage.outcome("u2,u4");
  ASSERT_FALSE(outcome.heats.empty());
  const HeatRecord& first = outcome.heats[0];
  ASSERT_EQ(first.order.size(), 4u);
  EXPECT_EQ(std::count(first.order.begin(), first.order.end(), 0u), 2);
  EXPECT_TRUE(std::isfinite(first.cost_ms[0]));
  EXPECT_TRUE(std::isfinite(first.base_again_ms));
  bool differs = false;
  for (const HeatRecord& heat : outcome.heats) differs |= heat.order != first.order;
  EXPECT_TRUE(differs) << "the order is never shuffled";
  ASSERT_EQ(first.samples_ms.size(), 4u);
  EXPECT_GE(first.samples_ms[0].size(), 3u);
}

TEST(Race, DropsTheFirstLaunchOfAWindow) {
  Stage stage;
  stage.sim.timing.noise = 0;
  stage.sim.timing.first_launch_slow = 0.5;
  const Outcome outcome = stage.outcome("u2");
  for (const auto& window : outcome.heats.at(0).samples_ms)
    for (const float sample : window) EXPECT_NEAR(sample, 0.25, 1e-6);
}

TEST(Race, ToleratesDriftThatWouldFoolSeparateWindows) {
  Stage stage;
  stage.sim.timing.ramp_per_s = 0.02;
  stage.sim.timing.step_at_s = {1.3, 2.1};
  const Outcome outcome = stage.outcome();
  EXPECT_EQ(outcome.winner, 0u) << outcome.sentence;
}

TEST(Race, SharesTheResultOfIdenticalCode) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.03}};
  const Outcome outcome = stage.outcome("u2,lazy,u2-lazy");
  EXPECT_EQ(variant(outcome, "lazy").exit, Exit::duplicate);
  EXPECT_EQ(variant(outcome, "lazy").same_code_as, "base");
  EXPECT_EQ(variant(outcome, "u2-lazy").same_code_as, "u2");
  const record::RaceRecord record = make_record(*stage.instance, outcome);
  EXPECT_EQ(record.find("u2-lazy")->detail.same_code_as, "u2");
  EXPECT_EQ(record.find("u2-lazy")->detail.exit, "duplicate");
  EXPECT_EQ(variant(outcome, "u2-lazy").rate, variant(outcome, "u2").rate);
  EXPECT_EQ(winner_of(outcome), "u2");
  EXPECT_EQ(stage.launches["u2-lazy"], 0) << "it was run although u2 is the same";
}

TEST(Race, DoesNotTakeOtherLaunchesForIdenticalCode) {
  auto program = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
  for (lattice::Knob& knob : program->editions[0].lattice.knobs)
    if (knob.name == "CHUNK") knob.applies = {lattice::Applies::launch};  // one text, other grids
  Stage stage(program);
  const Outcome outcome = stage.outcome("c64");
  EXPECT_EQ(variant(outcome, "c64").kernel.code_hash, variant(outcome, "base").kernel.code_hash);
  EXPECT_NE(variant(outcome, "c64").exit, Exit::duplicate);
}

TEST(Race, OfCopiesOfBaseAloneIsADeadHeat) {
  Stage stage;
  const Outcome outcome = stage.outcome("lazy");
  EXPECT_EQ(outcome.verdict_word, "dead-heat");
  ASSERT_TRUE(outcome.variants[0].rate);
}

TEST(Race, OfBaseAloneHasNothingToDecide) {
  Stage stage;
  const Outcome outcome = stage.outcome("base");
  EXPECT_EQ(outcome.verdict_word, "none");
  ASSERT_TRUE(outcome.variants[0].rate);
  EXPECT_GT(outcome.variants[0].heats, 0);
}

TEST(Race, EndsAtTheBudgetWithBaseWhenNothingIsShown) {
  Stage stage;
  stage.sim.timing.noise = 0.03;
  stage.sim.timing.gain = {{"u2", 0.01}};
  stage.options.budget_s = 0.4;
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(outcome.verdict_word, "out-of-budget");
  EXPECT_EQ(outcome.winner, 0u);
  EXPECT_NE(outcome.sentence.find("base stays"), std::string::npos) << outcome.sentence;
}

TEST(Race, CutsTheBudget) {
  Stage stage;
  stage.options.budget_s = 10'000;
  const Outcome outcome = stage.outcome("u2");
  ASSERT_FALSE(outcome.notes.empty());
  EXPECT_NE(outcome.notes[0].find("540"), std::string::npos) << outcome.notes[0];
}

TEST(Race, CountsCompilesInTheBudget) {
  Stage stage;
  stage.sim.compile_ms = 10'000;
  stage.options.budget_s = 30;
  const Outcome outcome = stage.outcome("u2,u4,u8");
  // Half of the budget is for compiles: base is not counted, u2 and u4 start in time.
  EXPECT_NE(variant(outcome, "u2").exit, Exit::compile);
  EXPECT_EQ(variant(outcome, "u8").exit, Exit::compile);
  EXPECT_NE(variant(outcome, "u8").why.find("budget"), std::string::npos);
  EXPECT_EQ(outcome.verdict_word, "out-of-budget") << "of u8 nothing is known";
}

/// Where compiles take no time: what the budget counts.
double counted_s(const Outcome& outcome) { return 1e-3 * outcome.total_ms; }

TEST(Race, KeepsTheBudgetOnASlowDevice) {
  // Base's own gate takes 200 launches; the others' 67 each, a heat four a window. Whatever does not fit is
  // out.
  for (const double launch_ms : {2.0, 10.0, 40.0, 160.0}) {
    for (const double budget_s : {1.0, 5.0, 20.0, 80.0}) {
      Stage stage;
      stage.sim.timing.base_ms = launch_ms;
      stage.sim.timing.gain = {{"u2", 0.05}};
      stage.sim.compile_ms = 0;
      stage.options.budget_s = budget_s;
      const Outcome outcome = stage.outcome();
      const std::string where = fmt::format("{:g} ms, {:g} s: {}", launch_ms, budget_s, outcome.sentence);
      EXPECT_TRUE(variant(outcome, "base").gated) << where;
      const double base_gate_s = 0.205 * launch_ms;
      EXPECT_LE(counted_s(outcome), std::max(budget_s, base_gate_s) + 0.01 * launch_ms) << where;
      int left_out = 0;
      for (const VariantOutcome& one : outcome.variants) {
        if (!one.same_code_as.empty()) continue;
        const bool budget = one.why == "not gated: budget" || one.why == "not timed: budget";
        left_out += budget;
        if (budget) {
          EXPECT_FALSE(one.gated) << where;
          EXPECT_FALSE(one.rate) << where;
        } else {
          EXPECT_TRUE(one.gated) << where << " " << one.name << " " << one.why;
        }
      }
      if (left_out > 0) {
        EXPECT_NE(outcome.notes.back().find("did not fit the budget"), std::string::npos) << where;
        EXPECT_NE(outcome.verdict_word, "dead-heat") << where << ": of those left out nothing is known";
      }
      // The first in line are kept, and raced to a decision.
      if (variant(outcome, "u2").rate) {
        EXPECT_EQ(outcome.variants[outcome.winner].name == "u2", outcome.verdict_word == "winner") << where;
      }
    }
  }
}

TEST(Race, GatesAndRacesAsManyAsTheBudgetHolds) {
  Stage stage;
  stage.sim.timing.base_ms = 10;
  stage.sim.timing.gain = {{"u2", 0.05}};
  stage.sim.compile_ms = 0;
  stage.options.budget_s = 12;
  const Outcome outcome = stage.outcome();
  EXPECT_EQ(winner_of(outcome), "u2") << outcome.sentence;
  EXPECT_TRUE(variant(outcome, "u4").gated);
  EXPECT_EQ(variant(outcome, "u8-c512").exit, Exit::gate);
  EXPECT_EQ(variant(outcome, "u8-c512").why, "not gated: budget");
  EXPECT_EQ(make_record(*stage.instance, outcome).find("u8-c512")->detail.exit, "budget") << "no fault";
  EXPECT_EQ(stage.launches["u8-c512"], 0);
  EXPECT_LE(counted_s(outcome), 12);
}

TEST(Race, LeavesOutTheOneWhoseGateIsSlow) {
  // u2 is a hundred times slower than base: it must not cost the others their gates.
  Stage stage;
  stage.sim.timing.base_ms = 2;
  stage.sim.timing.gain = {{"u2", -0.99}, {"u4", 0.05}};
  stage.sim.compile_ms = 0;
  stage.options.budget_s = 8;
  const Outcome outcome = stage.outcome("u2,u4,u8");
  EXPECT_EQ(variant(outcome, "u2").why, "not gated: budget");
  EXPECT_TRUE(variant(outcome, "u8").gated) << variant(outcome, "u8").why;
  EXPECT_EQ(winner_of(outcome), "u4") << outcome.sentence;
}

TEST(Race, CountsAllAttemptsInOneBudget) {
  Stage stage;
  stage.sim.faults = {{.variant = "u2", .fault = device::SimFault::trap}};
  stage.sim.compile_ms = 0;
  stage.options.budget_s = 3;
  stage.open();
  std::vector<std::unique_ptr<device::Device>> opened;
  stage.context.reopen = [&]() -> Result<device::Device*> {
    stage.clock->advance_ns(10'000'000'000);
    FURLONG_TRY(opened.emplace_back(), stage.driver->open(0));
    return opened.back().get();
  };
  const Outcome outcome = stage.outcome("u2,u4");
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(outcome.verdict_word, "none") << outcome.sentence;
  EXPECT_NE(outcome.sentence.find("nothing was timed before"), std::string::npos) << outcome.sentence;
  EXPECT_TRUE(variant(outcome, "base").gated);
  EXPECT_TRUE(outcome.heats.empty());
}

TEST(Race, KeepsThePauseCap) {
  for (const double cap_ms : {60.0, 150.0, 400.0}) {
    Stage stage;
    stage.sim.timing.noise = 0.03;
    stage.options.max_pause_ms = cap_ms;
    const Outcome outcome = stage.outcome("u2,u4");
    EXPECT_EQ(outcome.verdict_word, cap_ms < 100 ? outcome.verdict_word : "out-of-budget");
    EXPECT_LE(outcome.paused_ms, cap_ms);
  }
}

TEST(Race, StopsWhenTheGainNoLongerPays) {
  Stage stage;
  stage.sim.timing.noise = 0.02;
  stage.options.horizon_s = 1;
  const Outcome outcome = stage.outcome("u2,u4,u8");
  EXPECT_EQ(outcome.verdict_word, "out-of-budget");
  ASSERT_FALSE(outcome.notes.empty());
  EXPECT_NE(outcome.notes.back().find("does not pay"), std::string::npos) << outcome.notes.back();
  // With a day to serve it pays to know.
  stage.options.horizon_s = 86'400;
  EXPECT_NE(stage.outcome("u2,u4,u8").paused_ms, outcome.paused_ms);
}

TEST(Race, DropsHeatsWithAThrottleChangeAndCountsThem) {
  Stage stage;
  stage.sim.timing.noise = 0.01;
  stage.sim.faults = {
      {.variant = "u4", .fault = device::SimFault::throttle, .after_launches = 150, .for_launches = 60}};
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_GT(outcome.dropped_heats, 0);
  int dropped = 0;
  for (const HeatRecord& heat : outcome.heats) {
    dropped += heat.dropped;
    if (heat.dropped) {
      EXPECT_NE(heat.why_dropped.find("throttle"), std::string::npos);
    }
  }
  EXPECT_EQ(dropped, outcome.dropped_heats);
}

TEST(Race, SaysWhenNoHeatIsAccepted) {
  Stage stage;
  stage.sim.faults = {{.variant = "u4", .fault = device::SimFault::throttle}};
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(outcome.verdict_word, "none");
  EXPECT_EQ(outcome.winner, 0u);
  EXPECT_NE(outcome.sentence.find("no heat was accepted"), std::string::npos) << outcome.sentence;
  EXPECT_EQ(outcome.dropped_heats, static_cast<int>(outcome.heats.size()));
}

TEST(Race, BatchesShortKernels) {
  Stage stage;
  stage.sim.timing.base_ms = 0.006;
  stage.sim.timing.jitter_ms = 0.003;
  stage.sim.timing.gain = {{"u2", 0.05}};
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(winner_of(outcome), "u2") << outcome.sentence;
  EXPECT_NEAR(outcome.heats.at(0).cost_ms[0], 0.006, 0.0003);
}

TEST(Race, FlushesCachesForColdRaces) {
  Stage stage;
  stage.sim.timing.cold_slow = 0.5;
  stage.options.cache = CacheState::cold;
  const Outcome outcome = stage.outcome("u2");
  EXPECT_NEAR(outcome.heats.at(0).cost_ms[0], 0.375, 0.01);
}

TEST(Race, StopsWithinOneWindow) {
  Stage stage;
  stage.sim.timing.noise = 0.05;
  std::stop_source source;
  stage.context.stop = source.get_token();
  std::size_t heats = 0;
  stage.context.progress = [&](const Progress& progress) {
    heats = progress.heats;
    if (progress.phase == Phase::heats && progress.heats >= 1) source.request_stop();
  };
  const auto raced = stage.race("u2,u4");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::timeout);
  EXPECT_LE(heats, 60u);
}

TEST(Race, HoldsTheDeviceOncePerWindowOrGate) {
  Stage stage;
  int depth = 0, holds = 0;
  double longest_ms = 0, since = 0;
  stage.context.acquire = [&] {
    ASSERT_EQ(++depth, 1);
    ++holds;
    since = stage.clock->now_ms();
  };
  stage.context.release = [&] {
    ASSERT_EQ(--depth, 0);
    longest_ms = std::max(longest_ms, stage.clock->now_ms() - since);
  };
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(depth, 0);
  EXPECT_GT(holds, static_cast<int>(3 * outcome.heats.size()));
  EXPECT_LT(longest_ms, 10) << "mining would be paused for more than a window";
}

TEST(Race, LeavesBuffersAndModulesToServeWith) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.03}};
  Kept kept;
  std::vector<std::size_t> ready;
  stage.context.kept = &kept;
  stage.context.ready = [&](std::size_t one) {
    ready.push_back(one);
    EXPECT_TRUE(kept.buffers);
    EXPECT_TRUE(kept.modules.at(one));
  };
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(ready, (std::vector<std::size_t>{0, 1, 2}));
  ASSERT_TRUE(kept.buffers);
  const Buffers* before = kept.buffers.get();
  (void)stage.outcome("u2,u4");
  EXPECT_EQ(kept.buffers.get(), before) << "the buffers moved between two races of one program";
}

TEST(Race, ReportsItsPhasesInOrder) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.03}};
  std::vector<Phase> phases;
  stage.context.progress = [&](const Progress& progress) {
    if (phases.empty() || phases.back() != progress.phase) phases.push_back(progress.phase);
  };
  (void)stage.outcome("u2");
  ASSERT_FALSE(phases.empty());
  EXPECT_EQ(phases.front(), Phase::build);
  EXPECT_EQ(phases.back(), Phase::done);
  for (const Phase phase : {Phase::gate, Phase::heats, Phase::second_gate})
    EXPECT_NE(std::find(phases.begin(), phases.end(), phase), phases.end()) << static_cast<int>(phase);
}

TEST(Race, RefusesWrongRequests) {
  Stage stage;
  stage.open();
  const auto points = stage.instance->select("u2").value();
  const std::vector<lattice::Point> headless{points[1]};
  EXPECT_EQ(run(*stage.instance, headless, stage.options, stage.context).error().code(), Code::invalid);
  const std::vector<lattice::Point> twice{points[0], points[1], points[1]};
  const auto raced = run(*stage.instance, twice, stage.options, stage.context);
  EXPECT_NE(raced.error().text().find("'u2' is raced twice"), std::string::npos) << raced.error().text();
  stage.options.window_ms = 0;
  EXPECT_EQ(run(*stage.instance, points, stage.options, stage.context).error().code(), Code::invalid);
}

TEST(Race, ComparesWorkAndNotLaunches) {
  // c256 does twice the work a launch in 1.9 times the time.
  auto program = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
  program->work.amount = lattice::Expression::parse("n * 2 if CHUNK == 256 else n").value();
  Stage stage(program);
  stage.sim.timing.gain = {{"c256", 1 / 1.9 - 1}};
  const Outcome outcome = stage.outcome("c256,u2");
  EXPECT_EQ(winner_of(outcome), "c256") << outcome.sentence;
  EXPECT_NEAR(variant(outcome, "c256").gain, 2 / 1.9 - 1, 0.01);
}

TEST(Race, TheSentenceAgreesWithTheIntervals) {
  int ahead = 0, ended = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Stage stage;
    stage.sim.timing.noise = 0.02;
    stage.sim.timing.gain = {{"u2", 0.018}};
    stage.options.seed = seed;
    stage.options.budget_s = 0.6 + 0.05 * static_cast<double>(seed % 20);
    const Outcome outcome = stage.outcome();
    if (outcome.verdict_word != "out-of-budget" || outcome.winner != 0 || outcome.heats.empty()) continue;
    ++ended;
    const bool any = std::ranges::any_of(outcome.variants, [](const VariantOutcome& one) {
      return one.exit == Exit::none && one.low > stats::RaceRules{}.threshold;
    });
    ahead += any ? 1 : 0;
    EXPECT_EQ(outcome.sentence.find("nothing was shown") == std::string::npos, any) << outcome.sentence;
    EXPECT_EQ(outcome.sentence.find("'u2' by itself lies above") != std::string::npos, any)
        << outcome.sentence;
  }
  EXPECT_GT(ahead, 0);
  EXPECT_GT(ended, ahead);
}

}  // namespace
}  // namespace furlong::race
