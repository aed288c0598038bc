#include "furlong/race/ceiling.h"

#include "furlong/base/json.h"
#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using device::CeilingKind;
using testing::Stage;

device::Ceilings measured() {
  device::Ceilings ceilings;
  const auto add = [&](CeilingKind kind, std::uint64_t bytes, double rate) {
    ceilings.rates.push_back({kind, bytes, rate, 2, "block 256"});
  };
  add(CeilingKind::stream_read, 1 << 20, 1e9);
  add(CeilingKind::stream_read, 1 << 24, 0.5e9);
  add(CeilingKind::random4, 1 << 20, 100e6);
  add(CeilingKind::random4, 1 << 24, 50e6);
  add(CeilingKind::random16, 1 << 20, 80e6);
  add(CeilingKind::random16, 1 << 24, 40e6);
  add(CeilingKind::integer, 0, 4e9);
  add(CeilingKind::floating, 0, 8e9);
  return ceilings;
}

program::Instance::Work work_of(double amount) {
  program::Instance::Work work;
  work.amount = amount;
  return work;
}

TEST(CeilingOf, StreamsAreLimitedByTheirBytes) {
  program::Instance::Work work = work_of(1000);
  work.bytes = 1 << 24;
  const auto ceiling = ceiling_of(work, measured());
  ASSERT_TRUE(ceiling);
  EXPECT_EQ(ceiling->of, "stream reads");
  EXPECT_NEAR(ceiling->rate, 1000 / ((1 << 24) / 0.5e9), 1e-6);
  work.bytes = 1 << 10;
  EXPECT_FALSE(ceiling_of(work, measured())) << "it may lie in a nearer cache";
}

TEST(CeilingOf, LoadsOfTwoWidthsAddUp) {
  program::Instance::Work work = work_of(1000);
  work.bytes = 1 << 24;
  work.loads = {50e3, 40e3, 0};
  work.dataset = 1 << 24;
  const auto ceiling = ceiling_of(work, measured());
  ASSERT_TRUE(ceiling);
  EXPECT_EQ(ceiling->of, "random 4-byte loads and random 16-byte loads");
  EXPECT_NEAR(ceiling->rate, 1000 / (1e-3 + 1e-3), 1e-6);
  work.dataset = 1 << 22;  // half way: 75 and 60 million a second
  EXPECT_NEAR(ceiling_of(work, measured())->rate, 1000 / (50e3 / 75e6 + 40e3 / 60e6), 1e-6);
  work.loads[2] = 1;
  EXPECT_FALSE(ceiling_of(work, measured())) << "lines were not measured";
}

TEST(CeilingOf, TheSlowestLimitCounts) {
  program::Instance::Work work = work_of(1000);
  work.bytes = 1 << 20;  // about 1.05 ms
  work.flops = 80e6;     // 10 ms
  EXPECT_EQ(ceiling_of(work, measured())->of, "single-precision arithmetic");
  EXPECT_NEAR(ceiling_of(work, measured())->rate, 1000 / 10e-3, 1e-6);
  work.int_ops = 80e6;  // 20 ms
  EXPECT_EQ(ceiling_of(work, measured())->of, "32-bit integer arithmetic");
  work.flops = work.int_ops = 8;
  EXPECT_EQ(ceiling_of(work, measured())->of, "stream reads");
}

TEST(CeilingOf, IsUnknownWhereNothingIsToldOrMeasured) {
  EXPECT_FALSE(ceiling_of(work_of(1), measured()));
  program::Instance::Work work = work_of(1);
  work.bytes = 1 << 24;
  EXPECT_FALSE(ceiling_of(work, device::Ceilings()));
}

// The lottery's own arithmetic: 128 loads a hash at 39 G loads a second.
TEST(CeilingOf, TheLotteryIsBoundByItsLoads) {
  program::Instance::Work work = work_of(524288);
  work.bytes = 524288.0 * 128 * 4;
  work.loads = {524288.0 * 128, 0, 0};
  work.dataset = 1 << 30;
  device::Ceilings ceilings;
  ceilings.rates = {{CeilingKind::random4, 64u << 20, 60e9, 2, ""},
                    {CeilingKind::random4, 1u << 30, 39e9, 2, ""}};
  const auto ceiling = ceiling_of(work, ceilings);
  ASSERT_TRUE(ceiling);
  EXPECT_NEAR(ceiling->rate / 1e6, 304.7, 0.1);
}

TEST(AddShares, GivesEachTimedVariantItsShare) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.03}};
  stage.sim.faults = {{.variant = "u8", .fault = device::SimFault::compile_error}};
  Outcome outcome = stage.outcome("u2,u8");
  const auto work = stage.instance->work(outcome.variants[0].point);
  ASSERT_TRUE(work);
  device::Ceilings ceilings;
  ASSERT_TRUE(work->bytes) << "the test's program tells its bytes";
  // A launch of base takes 0.25 ms; the ceiling lets it take 0.2.
  ceilings.rates = {{CeilingKind::stream_read, static_cast<std::uint64_t>(*work->bytes),
                     *work->bytes / 0.2e-3, 2, "block 256"}};
  add_shares(*stage.instance, ceilings, outcome);
  EXPECT_NEAR(outcome.variants[0].share_of_ceiling.value_or(0), 0.8, 0.01);
  EXPECT_EQ(outcome.variants[0].ceiling, "stream reads");
  EXPECT_NEAR(outcome.variants[1].share_of_ceiling.value_or(0), 0.8 * 1.03, 0.01);
  EXPECT_FALSE(outcome.variants[2].share_of_ceiling) << "never timed";
  const Json document = to_json(*stage.instance, outcome, stage.options);
  EXPECT_NEAR(document["variants"][1]["share_of_ceiling"].get<double>(), 0.8 * 1.03, 0.01);
  EXPECT_EQ(document["variants"][1]["ceiling"]["of"], "stream reads");
  EXPECT_FALSE(document["variants"][2].contains("share_of_ceiling"));
  const auto record = make_record(*stage.instance, outcome);
  EXPECT_NEAR(record.ceiling.value_or(0), *outcome.variants[1].ceiling_rate / 1e6, 1e-3);
}

}  // namespace
}  // namespace furlong::race
