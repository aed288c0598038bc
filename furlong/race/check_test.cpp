// A race without its heats, on a simulated card.
#include <gmock/gmock.h>

#include "furlong/race/internal/testing.h"
#include "furlong/race/race.h"

namespace furlong::race {
namespace {

using ::testing::HasSubstr;
using testing::Stage;
using testing::variant;

Result<Outcome> check_of(Stage& stage, const std::string& variants, std::size_t entrants) {
  if (!stage.device) stage.open();
  FURLONG_TRY(const auto points, stage.instance->select(variants));
  return check(*stage.instance, points, entrants, stage.options, stage.context);
}

TEST(Check, CompilesGatesAndLaunchesBaseAlone) {
  Stage stage;
  const auto checked = check_of(stage, "catalogue", 1);
  ASSERT_TRUE(checked) << checked.error().text();
  EXPECT_TRUE(checked->heats.empty());
  EXPECT_EQ(checked->verdict_word, "none");
  EXPECT_TRUE(checked->variants[0].gated);
  EXPECT_FALSE(checked->variants[0].rate);
  EXPECT_EQ(variant(*checked, "u2").why, "not asked for");
  EXPECT_EQ(stage.launches.count("u2"), 0u);
  EXPECT_GE(checked->base_compile_ms, 50);  // the simulated compiler's
  EXPECT_LT(checked->base_compile_ms, 100);
  EXPECT_GT(checked->base_gate_ms, 0);
  EXPECT_NEAR(checked->base_launch_ms, 0.25, 0.05);
  EXPECT_GE(checked->total_ms, checked->base_compile_ms + checked->base_gate_ms + checked->base_launch_ms);
}

TEST(Check, ItsBuffersAreThoseOfTheRace) {
  Stage one, other;
  const auto checked = check_of(one, "catalogue", 1);
  ASSERT_TRUE(checked) << checked.error().text();
  const Outcome raced = other.outcome();
  EXPECT_EQ(checked->buffer_bytes, raced.buffer_bytes);
  EXPECT_GT(checked->buffer_bytes, 2u * 4 * 4096);
  // The race tells of base what the check does.
  EXPECT_NEAR(raced.base_compile_ms, checked->base_compile_ms, 1);
  EXPECT_NEAR(raced.base_gate_ms, checked->base_gate_ms, 0.5 * checked->base_gate_ms);
  EXPECT_NEAR(raced.base_launch_ms, checked->base_launch_ms, 0.1 * checked->base_launch_ms);
}

TEST(Check, GatesThoseThatAreAskedFor) {
  Stage stage;
  stage.tamper["u4"] = [](const testing::Call& call) { ++call.y[7]; };
  const auto checked = check_of(stage, "u2,u4,u8", 3);
  ASSERT_TRUE(checked) << checked.error().text();
  EXPECT_EQ(variant(*checked, "u2").exit, Exit::none);
  EXPECT_TRUE(variant(*checked, "u2").gated);
  EXPECT_EQ(variant(*checked, "u4").exit, Exit::gate);
  EXPECT_THAT(variant(*checked, "u4").why, HasSubstr("element"));
  EXPECT_EQ(stage.launches.count("u8"), 0u);
}

TEST(Check, HasNoBudget) {
  Stage stage;
  stage.options.budget_s = 1e-3;
  const auto checked = check_of(stage, "u2,u4", 3);
  ASSERT_TRUE(checked) << checked.error().text();
  for (const VariantOutcome& one : checked->variants) {
    EXPECT_EQ(one.exit, Exit::none) << one.why;
    EXPECT_TRUE(one.gated) << one.name;
  }
}

TEST(Check, BaseThatFailsIsTheError) {
  Stage stage;
  stage.tamper["base"] = [](const testing::Call& call) {
    call.y[7] += static_cast<std::uint32_t>(call.launch);
  };
  const auto checked = check_of(stage, "base", 1);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), Code::mismatch);
}

TEST(Check, TakesOneToAllOfThePoints) {
  Stage stage;
  for (const std::size_t entrants : {0u, 3u}) {
    const auto checked = check_of(stage, "u2", entrants);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), Code::invalid);
  }
}

TEST(Check, Stops) {
  Stage stage;
  std::stop_source stop;
  stage.context.stop = stop.get_token();
  stop.request_stop();
  const auto checked = check_of(stage, "base", 1);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), Code::timeout);
}

}  // namespace
}  // namespace furlong::race
