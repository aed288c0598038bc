#include "furlong/shard/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "furlong/base/random.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using synthetic::SyntheticExecutor;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;

class MakePlanTest : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    if (HasFatalFailure()) return;
    request_.sizing = {.budget_bytes = 4000, .usable = 0.5, .fitted = true};
    request_.journal = folder_->path() / "j";
  }
  // Groups that share heads, and a few units that fail.
  void make(int units, bool failures) {
    Random random(3);
    std::vector<Script> scripts;
    for (int i = 0; i < units; ++i) {
      const auto first = random.between(0, 100);
      Script script{fmt::format("u{}", i),
                    fmt::format("bytes={} load={} rows={}-{} seconds=0.25", random.between(1, 200),
                                random.between(0, 90), first, first + random.between(0, 12)),
                    {},
                    {}};
      if (i >= 10) script.references = {fmt::format("u{}", i % 10), fmt::format("u{}", random.below(10))};
      if (failures && i % 50 == 49) script.text += " reject=\"no\",really";
      scripts.push_back(script);
    }
    make_store(scripts);
  }
  PlanOutcome good() {
    auto outcome = make_plan(store_, executor_, request_);
    if (!outcome) throw std::runtime_error(outcome.error().text());
    return std::move(*outcome);
  }
  SyntheticExecutor executor_;
  PlanRequest request_;
};

TEST_F(MakePlanTest, CoversEveryUnitOnceWithinTheCut) {
  make(200, false);
  const PlanOutcome outcome = good();
  EXPECT_TRUE(outcome.complete);
  EXPECT_TRUE(require_coverage(outcome.plan, *store_));
  EXPECT_GT(outcome.plan.shards.size(), 4u);
  EXPECT_LT(outcome.plan.shards.size(), outcome.segments) << "merging took back what chunks cost";
  for (const PlanShard& shard : outcome.plan.shards) {
    EXPECT_FALSE(outcome.plan.sizing.reaches_cut(outcome.costs.at(shard.id)));
    EXPECT_EQ(shard.cost_kind, CostKind::work);
    EXPECT_EQ(shard.cost, outcome.costs.at(shard.id).work);
    EXPECT_GT(shard.own_bytes, 0u);
  }
  const auto read = parse_plan(print_plan(outcome.plan), "p.fsp");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, outcome.plan);
  EXPECT_EQ(outcome.plan.sizing.record_cap_bytes, 4000u) << "what the base leaves of the budget";
}

TEST_F(MakePlanTest, CrossBytesAreThoseOfTheStore) {
  make(80, false);
  const PlanOutcome outcome = good();
  std::uint64_t sum = 0, by_hand = 0;
  for (const PlanShard& shard : outcome.plan.shards) {
    sum += shard.cross_bytes;
    std::set<Key> owned, foreign;
    std::vector<Unit> units;
    for (const UnitIndex unit : shard.units) units.push_back(*store_->unit(unit));
    for (const Unit& unit : units) owned.insert(unit.items.begin(), unit.items.end());
    for (const Unit& unit : units)
      for (const Key& item : unit.references)
        if (!owned.contains(item) && foreign.insert(item).second) by_hand += *store_->item_bytes(item);
    EXPECT_EQ(shard.foreign, foreign.size());
  }
  EXPECT_EQ(sum, by_hand);
}

TEST_F(MakePlanTest, TheSameJournalGivesTheSamePlanByteForByte) {
  make(150, true);
  request_.fail_fast = false;
  const std::string first = print_plan(good().plan);
  const int begun = executor_.begun;
  EXPECT_EQ(print_plan(good().plan), first);
  EXPECT_EQ(executor_.begun, begun) << "and nothing is executed for it";
  request_.workers = 8;
  EXPECT_EQ(print_plan(good().plan), first);
  request_.journal = folder_->path() / "another";
  EXPECT_EQ(print_plan(good().plan), first) << "eight workers from the start";
}

TEST_F(MakePlanTest, InterruptedOverAndOverItEndsWithTheSamePlan) {
  make(120, false);
  const std::string whole = print_plan(good().plan);
  request_.journal = folder_->path() / "j2";
  for (int round = 0;; ++round) {
    ASSERT_LT(round, 200);
    std::stop_source source;
    int left = 60;
    executor_.hooks.before_add = [&](const Unit&) {
      if (--left == 0) source.request_stop();
    };
    request_.stop = source.get_token();
    const auto outcome = make_plan(store_, executor_, request_);
    if (!outcome) {
      EXPECT_EQ(outcome.error().code(), Code::timeout) << outcome.error().text();
      continue;
    }
    EXPECT_GT(round, 2);
    EXPECT_EQ(print_plan(outcome->plan), whole);
    break;
  }
}

TEST_F(MakePlanTest, AJournalOfAnotherBudgetIsRefused) {
  make(30, false);
  good();
  request_.sizing.budget_bytes = 5000;
  const auto outcome = make_plan(store_, executor_, request_);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Code::invalid);
  EXPECT_THAT(outcome.error().text(), HasSubstr("remove it, or give another file"));
}

TEST_F(MakePlanTest, SkippedUnitsAreNamedInThePlanTheFileAndTheGate) {
  make(100, true);
  request_.fail_fast = false;
  const PlanOutcome outcome = good();
  ASSERT_EQ(outcome.plan.failed.size(), 2u);
  const Status gate = require_coverage(outcome.plan, *store_);
  ASSERT_FALSE(gate);
  EXPECT_THAT(gate.error().text(), ::testing::EndsWith("2 failed and in no shard: 'u49', 'u99'"));
  const auto csv = failed_csv(outcome.plan.failed, *store_);
  ASSERT_TRUE(csv);
  EXPECT_THAT(*csv, HasSubstr("\"\"\"no\"\",really\""));
}

TEST_F(MakePlanTest, FailFastStopsAndStillNamesTheUnit) {
  make(100, true);
  const PlanOutcome outcome = good();
  EXPECT_FALSE(outcome.complete);
  EXPECT_TRUE(outcome.plan.shards.empty());
  ASSERT_EQ(outcome.plan.failed.size(), 1u);
  EXPECT_TRUE(outcome.plan.failed[0].unit == 49 || outcome.plan.failed[0].unit == 99);
}

TEST_F(MakePlanTest, APlanOfASliceFailsTheGateByName) {
  make(60, false);
  request_.limit_units = 25;
  const PlanOutcome outcome = good();
  EXPECT_EQ(outcome.plan.slice, 25u);
  EXPECT_THAT(require_coverage(outcome.plan, *store_).error().text(), HasSubstr("the first 25 of 60 units"));
}

TEST_F(MakePlanTest, WithNothingFittedThreePrefixesTellBaseAndMemoryPerWork) {
  make(400, false);
  constexpr std::uint64_t kGiB = 1024 * kMiB;  // above what this process itself takes
  request_.sizing = {.budget_bytes = 64 * kGiB};
  executor_.hooks.peak_bytes = [](const Cost& cost) {  // a job of 5 GiB and 1000 bytes per W
    return 5 * kGiB + static_cast<std::uint64_t>(1000 * cost.work) + cost.record_bytes;
  };
  const PlanOutcome outcome = good();
  ASSERT_TRUE(outcome.fit);
  ASSERT_EQ(outcome.fit->prefixes.size(), 3u);
  EXPECT_LT(outcome.fit->prefixes[0].work, outcome.fit->prefixes[2].work);
  EXPECT_NEAR(static_cast<double>(outcome.plan.sizing.base_bytes), 5.0 * kGiB, 4);
  EXPECT_NEAR(outcome.plan.sizing.ram_per_work, 1000, 0.01);
  EXPECT_TRUE(outcome.plan.sizing.fitted);
  EXPECT_THAT(outcome.fit->text(), HasSubstr("nothing was fitted yet: from 3 prefixes"));
  const std::string first = print_plan(outcome.plan);
  executor_.hooks.peak_bytes = {};
  EXPECT_EQ(print_plan(good().plan), first) << "the journal knows what was measured";
}

TEST_F(MakePlanTest, TheStoresExecutorMustBeTheOneThatPlans) {
  make(5, false);
  executor_.the_version = 2;
  EXPECT_EQ(make_plan(store_, executor_, request_).error().code(), Code::incompatible);
}

TEST_F(MakePlanTest, ABudgetBelowTheBaseIsSaidAtOnce) {
  make(5, false);
  request_.sizing.base_bytes = 3000;
  EXPECT_THAT(make_plan(store_, executor_, request_).error().text(), HasSubstr("give a larger budget"));
}

TEST(PrefixFits, NeverHaveANegativeCoefficient) {
  const PrefixFit falling = fit_prefixes({{1, 10, 0, 900}, {2, 20, 0, 800}, {4, 40, 0, 700}});
  EXPECT_EQ(falling.base_bytes, 900u);
  EXPECT_EQ(falling.ram_per_work, 0);
  const PrefixFit steep = fit_prefixes({{1, 10, 0, 10}, {2, 20, 0, 200}, {4, 40, 0, 900}});
  EXPECT_EQ(steep.base_bytes, 0u);
  EXPECT_EQ(steep.ram_per_work, 22.5);
  const PrefixFit one = fit_prefixes({{1, 10, 100, 600}});
  EXPECT_EQ(one.base_bytes, 500u);
  EXPECT_EQ(one.ram_per_work, 0);
  const PrefixFit line = fit_prefixes({{1, 10, 50, 350}, {2, 20, 60, 460}, {4, 40, 70, 670}});
  EXPECT_NEAR(static_cast<double>(line.base_bytes), 200, 1);
  EXPECT_NEAR(line.ram_per_work, 10, 1e-9);
}

}  // namespace
}  // namespace furlong::shard
