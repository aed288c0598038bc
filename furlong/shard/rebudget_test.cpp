#include "furlong/shard/rebudget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/make_plan.h"
#include "furlong/shard/make_profile.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using ::testing::HasSubstr;

class RebudgetTest : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    std::vector<Script> scripts;
    for (int i = 0; i < 40; ++i) scripts.push_back({fmt::format("u{}", i), "bytes=100", {}, {}});
    make_store(scripts);
    PlanRequest request;
    request.sizing = {.budget_bytes = 2000, .fitted = true};
    request.sizing.usable = 0.5;
    request.chunk_units = 40;
    auto outcome = make_plan(store_, executor_, request);
    ASSERT_TRUE(outcome) << outcome.error().text();
    plan_ = outcome->plan;
    ASSERT_GE(plan_.shards.size(), 4u);
  }
  Digest digest(const PlanShard& shard) {
    return make_claim(*store_, shard.units)->digest("synthetic", executor_.version());
  }
  Result<Rebudgeted> split(ShardId shard, std::uint64_t budget) {
    return rebudget(store_, executor_, plan_, {.shard = shard, .budget_bytes = budget});
  }

  synthetic::SyntheticExecutor executor_;
  Plan plan_;
};

TEST_F(RebudgetTest, SplitsOneAndLeavesAllOthersAsTheyWere) {
  for (const ShardId id : {ShardId{0}, ShardId{1}, plan_.shards.back().id}) {  // the first and the last too
    const auto result = split(id, 450);
    ASSERT_TRUE(result) << result.error().text();
    ASSERT_GE(result->children.size(), 2u);
    EXPECT_EQ(result->children.front(), id) << "the first piece keeps the number";
    std::vector<UnitIndex> joined;
    for (const ShardId child : result->children) {
      const PlanShard* piece = result->plan.find(child);
      ASSERT_NE(piece, nullptr);
      EXPECT_GT(piece->record_bytes, 0u) << "re-priced";
      EXPECT_TRUE(result->costs.contains(child));
      joined.insert(joined.end(), piece->units.begin(), piece->units.end());
    }
    EXPECT_EQ(joined, plan_.find(id)->units) << "in their original order";
    for (const PlanShard& shard : plan_.shards) {
      if (shard.id == id) continue;
      EXPECT_EQ(*result->plan.find(shard.id), shard);
      EXPECT_EQ(digest(*result->plan.find(shard.id)), digest(shard)) << "so its receipt is still its own";
    }
    EXPECT_TRUE(require_coverage(result->plan, *store_));
    const auto read = parse_plan(print_plan(result->plan), "rebudgeted");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, result->plan);
  }
}

TEST_F(RebudgetTest, TheLeafBecomesAChainThatLeansLeft) {
  plan_.tree = {0, 1, kJoin, 2, kJoin};
  plan_.shards.resize(3);
  plan_.slice = 0;
  const auto result = split(1, 800);
  ASSERT_TRUE(result) << result.error().text();
  AggregationTree expected{0, 1};
  for (std::size_t i = 1; i < result->children.size(); ++i) {
    expected.push_back(result->children[i]);
    expected.push_back(kJoin);
  }
  expected.insert(expected.end(), {kJoin, 2, kJoin});
  EXPECT_EQ(result->plan.tree, expected);
}

TEST_F(RebudgetTest, CutsByAProfileAndRefusesOneWithAUnitThatThePlanLacks) {
  ProfileRequest request;
  auto made = make_profile(store_, executor_, request);
  ASSERT_TRUE(made) << made.error().text();
  const Profile& profile = made->profile;
  const RebudgetRequest by_profile{.shard = 1, .budget_bytes = 450, .profile = &profile};
  const auto result = rebudget(store_, executor_, plan_, by_profile);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_GE(result->children.size(), 2u);
  EXPECT_EQ(result->children.size(), split(1, 450)->children.size()) << "these units share nothing";
  EXPECT_TRUE(require_coverage(result->plan, *store_));
  Plan without = plan_;
  const UnitIndex gone = without.shards.front().units.back();
  without.shards.front().units.pop_back();
  const Error error = rebudget(store_, executor_, without, by_profile).error();
  EXPECT_EQ(error.code(), Code::invalid);
  EXPECT_THAT(error.text(), HasSubstr(fmt::format("the unit 'u{}', which the plan lacks", gone)));
  Profile unknown = profile;
  unknown.states[plan_.find(1)->units.front()] = UnitState::unknown;
  EXPECT_THAT(rebudget(store_, executor_, plan_, {.shard = 1, .budget_bytes = 450, .profile = &unknown})
                  .error()
                  .text(),
              HasSubstr("does not say what the unit"));
}

TEST_F(RebudgetTest, WhatCannotBeDoneChangesNothing) {
  const Plan before = plan_;
  EXPECT_EQ(split(99, 1000).error().code(), Code::invalid);
  EXPECT_THAT(split(99, 1000).error().text(), HasSubstr("no shard 99"));
  EXPECT_THAT(split(1, 2000).error().text(), HasSubstr("does not split under this budget: lower the budget"));
  const auto small = split(1, 50);  // less than any unit
  EXPECT_EQ(small.error().code(), Code::exhausted);
  EXPECT_THAT(small.error().text(), HasSubstr("unit 'u"));
  Plan foreign = plan_;
  foreign.store = blake2b_256("another");
  EXPECT_EQ(rebudget(store_, executor_, foreign, {.shard = 1, .budget_bytes = 1000}).error().code(),
            Code::mismatch);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(rebudget(store_, executor_, plan_, {.shard = 1, .budget_bytes = 1000, .stop = stop.get_token()})
                .error()
                .code(),
            Code::timeout);
  EXPECT_EQ(plan_, before);
}

}  // namespace
}  // namespace furlong::shard
