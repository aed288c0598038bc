#include "furlong/shard/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/json.h"
#include "furlong/base/random.h"

namespace furlong::shard {
namespace {

using ::testing::HasSubstr;

Plan plan_of(const std::vector<double>& seconds) {
  Plan plan;
  UnitIndex unit = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    plan.shards.push_back({static_cast<ShardId>(i),
                           CostKind::work,
                           100 * seconds[i],
                           1000,
                           seconds[i],
                           10,
                           3,
                           1,
                           {unit++, unit++}});
  return plan;
}

WhatIf good(const Plan& plan, const std::vector<std::uint32_t>& runners) {
  auto report = what_if(plan, runners);
  if (!report) throw std::runtime_error(report.error().text());
  return *report;
}

TEST(WhatIf, LongestFirstOnSeveralRunners) {
  // The classic example: 7, 7, 6, 6, 5, 4 and 4 on three take 15 longest first.
  const WhatIf report = good(plan_of({4, 7, 5, 6, 7, 4, 6}), {1, 3, 7, 100});
  EXPECT_EQ(report.shards, 7u);
  EXPECT_EQ(report.units, 14u);
  EXPECT_EQ(report.unit, "s");
  EXPECT_EQ(report.total, 39);
  EXPECT_EQ(report.longest, 7);
  EXPECT_DOUBLE_EQ(report.imbalance, 7 / (39 / 7.0));
  EXPECT_EQ(report.own_bytes, 70u);
  EXPECT_EQ(report.cross_bytes, 21u);
  ASSERT_EQ(report.times.size(), 4u);
  EXPECT_EQ(report.times[0].wall, 39);
  EXPECT_EQ(report.times[0].efficiency, 1);
  EXPECT_EQ(report.times[1].wall, 15);
  EXPECT_EQ(report.times[1].bound, 13);
  EXPECT_DOUBLE_EQ(report.times[1].efficiency, 39 / 45.0);
  EXPECT_EQ(report.times[2].wall, 7);
  EXPECT_EQ(report.times[3].wall, 7) << "no more runners than shards help";
}

TEST(WhatIf, IsNeverOverFourThirdsOfTheBound) {
  Random random(2);
  for (int i = 0; i < 50; ++i) {
    std::vector<double> seconds;
    for (int s = 0; s < 40; ++s) seconds.push_back(1 + random.uniform() * 9);
    for (const RunnerTime& time : good(plan_of(seconds), {1, 2, 3, 5, 8, 13}).times) {
      EXPECT_GE(time.wall, time.bound * (1 - 1e-12));
      EXPECT_LE(time.wall, time.bound * 4 / 3 + 1e-9) << "so many shards of about one length come near it";
    }
  }
}

TEST(WhatIf, LengthsAreWhatThePlanKnows) {
  Plan plan = plan_of({1, 2});
  plan.sizing.base_seconds = 10;
  plan.sizing.seconds_per_work = 0.5;
  EXPECT_EQ(good(plan, {}).total, 2 * 10 + 50 + 100) << "the job's seconds, as fitted";
  plan.sizing = {};
  for (PlanShard& shard : plan.shards) shard.seconds = 0;
  EXPECT_EQ(good(plan, {}).unit, "W");
  EXPECT_EQ(good(plan, {}).total, 300);
  for (PlanShard& shard : plan.shards) shard.cost_kind = CostKind::profile_units;
  EXPECT_EQ(good(plan, {}).unit, "profile units");
  plan.shards[1].cost_kind = CostKind::unknown;
  EXPECT_EQ(good(plan, {}).unit, "units");
  EXPECT_EQ(good(plan, {}).total, 4);
  plan.sizing = {.base_bytes = 5000, .ram_per_work = 2, .fitted = true};
  EXPECT_EQ(good(plan, {}).largest_bytes, 5000u + 400 + 1000);
  EXPECT_EQ(good(Plan{}, {2}).times[0].wall, 0);
  EXPECT_EQ(what_if(plan, std::vector<std::uint32_t>{0}).error().code(), Code::invalid);
}

TEST(WhatIf, IsTextAndJson) {
  Plan plan = plan_of({1, 2, 3});
  plan.failed = {{9, Code::mismatch, "no"}};
  const WhatIf report = good(plan, {2});
  const std::string text = what_if_text(report);
  for (const char* part :
       {"3 shards of 6 units", "cross bytes 9 B", "1 units failed", "runners", "wall s", "100%"})
    EXPECT_THAT(text, HasSubstr(part));
  const auto json = json_parse(what_if_json(report), "report");
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_EQ((*json)["times"][0]["wall"].get<double>(), 3);
  EXPECT_EQ((*json)["failed"].get<int>(), 1);
}

}  // namespace
}  // namespace furlong::shard
