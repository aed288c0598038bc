#include "furlong/shard/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "furlong/base/random.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"
#include "furlong/shard/scan.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using synthetic::SyntheticExecutor;

class MergeTest : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    if (HasFatalFailure()) return;
    options_.sizing = {.budget_bytes = 2000, .usable = 0.5, .fitted = true};  // the cut is at 1000
  }
  void make(const std::vector<Script>& scripts) {
    make_store(scripts);
    order_.resize(store_->unit_count());
    std::iota(order_.begin(), order_.end(), 0u);
  }
  std::vector<PricedShard> priced(const std::vector<std::vector<UnitIndex>>& parts) {
    std::vector<PricedShard> shards;
    for (const auto& part : parts) shards.push_back({part, {}, false});
    const Status status = price_shards(store_, executor_, shards, options_, journal_);
    if (!status) throw std::runtime_error(status.error().text());
    return shards;
  }
  Result<MergeReport> run(std::vector<PricedShard>& shards) {
    FURLONG_TRY(const Sharing sharing, Sharing::read(*store_));
    return merge(store_, executor_, sharing, order_, shards, options_, journal_);
  }
  MergeReport good(std::vector<PricedShard>& shards) {
    auto report = run(shards);
    if (!report) throw std::runtime_error(report.error().text());
    return *report;
  }
  static std::vector<std::vector<UnitIndex>> parts(const std::vector<PricedShard>& shards) {
    std::vector<std::vector<UnitIndex>> list;
    for (const PricedShard& shard : shards) list.push_back(shard.units);
    return list;
  }
  using Parts = std::vector<std::vector<UnitIndex>>;

  std::vector<UnitIndex> order_;
  SyntheticExecutor executor_;
  PriceOptions options_;
  Journal journal_;
};

TEST_F(MergeTest, NeighboursThatFitBecomeOneInTheOrderOfTheUnits) {
  make({{"a", "bytes=300"}, {"b", "bytes=300"}, {"c", "bytes=300"}, {"d", "bytes=900"}});
  order_ = {1, 0, 2, 3};
  auto shards = priced({{1}, {0}, {2}, {3}});
  const MergeReport report = good(shards);
  EXPECT_EQ(parts(shards), (Parts{{1, 0, 2}, {3}}));
  EXPECT_EQ(shards[0].cost.record_bytes, 900u) << "re-priced, not added up";
  EXPECT_TRUE(report.fixpoint);
  EXPECT_EQ(report.merged, 2u);
}

// 40 rows are 213 of work each, 80 rows are 506: more than the sum.
TEST_F(MergeTest, TwoThatFitBySumButNotMergedAreRefused) {
  options_.sizing.ram_per_work = 1;
  make({{"a", "rows=1-40"}, {"b", "rows=41-80"}});
  auto shards = priced({{0}, {1}});
  const double one = options_.sizing.predicted_bytes(shards[0].cost);
  const double two = options_.sizing.predicted_bytes(shards[1].cost);
  options_.sizing.budget_bytes = static_cast<std::uint64_t>(2 * (one + two + 1));  // the sum is below the cut
  ASSERT_FALSE(one + two >= options_.sizing.usable * static_cast<double>(options_.sizing.budget_bytes));
  const auto before = shards;
  const MergeReport report = good(shards);
  EXPECT_EQ(parts(shards), parts(before)) << "rolled back";
  EXPECT_EQ(shards[0].cost.work, before[0].cost.work);
  EXPECT_EQ(report.refused, 1u);
  EXPECT_EQ(report.merged, 0u);
  EXPECT_TRUE(report.fixpoint);
}

TEST_F(MergeTest, TwoThatFitOnlyMergedAreMerged) {
  make({{"shared", "load=600"}, {"a", "bytes=100", {"shared"}}, {"b", "bytes=100", {"shared"}}});
  auto shards = priced({{1}, {2}});
  EXPECT_EQ(shards[0].cost.record_bytes + shards[1].cost.record_bytes, 1400u) << "over the cut by sum";
  good(shards);
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].cost.record_bytes, 800u) << "the shared one is filled once";
}

TEST_F(MergeTest, PairsThatShareBytesMergeAcrossOthers) {
  make({{"a", "load=10 bytes=400"}, {"full", "bytes=990"}, {"b", "bytes=400", {"a"}}, {"c", "bytes=400"}});
  auto shards = priced({{0}, {1}, {2}, {3}});
  good(shards);
  // c is b's neighbour and comes first; a shares with b, and all three are too much.
  EXPECT_EQ(parts(shards), (Parts{{0}, {1}, {2, 3}}));
  shards = priced({{0}, {1}, {2}});
  good(shards);
  EXPECT_EQ(parts(shards), (Parts{{0, 2}, {1}}));
}

TEST_F(MergeTest, AUnitOverTheCutStaysAlone) {
  make({{"a", "bytes=1500"}, {"b", "bytes=10", {"a"}}});
  auto shards = priced({{0}, {1}});
  shards[0].alone = true;
  const MergeReport report = good(shards);
  EXPECT_EQ(shards.size(), 2u);
  EXPECT_EQ(report.attempts, 0u);
}

TEST_F(MergeTest, TheRecordsCapRefusesAsTheCutDoes) {
  options_.sizing.record_cap_bytes = 500;
  make({{"a", "bytes=300"}, {"b", "bytes=300"}});
  auto shards = priced({{0}, {1}});
  EXPECT_EQ(good(shards).refused, 1u);
  EXPECT_EQ(shards.size(), 2u);
}

class RandomMerge : public MergeTest {
 protected:
  std::vector<PricedShard> many() {
    Random random(5);
    std::vector<Script> scripts;
    Parts each;
    for (UnitIndex i = 0; i < 60; ++i) {
      const auto first = random.between(0, 60);
      Script script{fmt::format("u{}", i),
                    fmt::format("bytes={} load={} rows={}-{}", random.between(0, 200), random.between(0, 80),
                                first, first + random.between(0, 10)),
                    {},
                    {}};
      for (int r = 0; r < 3 && i > 0; ++r) script.references.push_back(fmt::format("u{}", random.below(i)));
      scripts.push_back(script);
      each.push_back({i});
    }
    make(scripts);
    return priced(each);
  }
};

TEST_F(RandomMerge, EndsAtAFixpointAndASecondRunChangesNothing) {
  auto shards = many();
  const MergeReport report = good(shards);
  EXPECT_TRUE(report.fixpoint);
  EXPECT_LT(report.passes, kMostMergePasses);
  EXPECT_GT(report.merged, 30u);
  for (const PricedShard& shard : shards) {
    EXPECT_FALSE(options_.sizing.reaches_cut(shard.cost));
    Journal cold;  // a merged shard's cost is that of its own claim
    const auto again = price(store_, executor_, shard.units, options_.sizing, false, cold);
    EXPECT_EQ((*again)->record_bytes, shard.cost.record_bytes);
    EXPECT_EQ((*again)->work, shard.cost.work);
  }
  const auto before = parts(shards);
  const MergeReport second = good(shards);
  EXPECT_EQ(parts(shards), before);
  EXPECT_EQ(second.merged, 0u);
  Journal fresh;  // also when nothing is remembered
  const auto sharing = Sharing::read(*store_);
  ASSERT_TRUE(sharing && merge(store_, executor_, *sharing, order_, shards, options_, fresh));
  EXPECT_EQ(parts(shards), before);
}

TEST_F(RandomMerge, TheWorkersDoNotChangeTheResult) {
  auto one = many();
  const auto singles = one;
  good(one);
  for (const unsigned workers : {2u, 8u}) {
    options_.workers = workers;
    auto shards = singles;
    Journal fresh;
    const auto sharing = Sharing::read(*store_);
    ASSERT_TRUE(sharing && merge(store_, executor_, *sharing, order_, shards, options_, fresh));
    EXPECT_EQ(parts(shards), parts(one));
  }
}

TEST_F(RandomMerge, AStopLeavesShardsThatAreWhole) {
  auto shards = many();
  std::stop_source source;
  int left = 50;
  executor_.hooks.before_add = [&](const Unit&) {
    if (--left == 0) source.request_stop();
  };
  options_.stop = source.get_token();
  const auto report = run(shards);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::timeout);
  std::vector<UnitIndex> all;
  for (const PricedShard& shard : shards) all.insert(all.end(), shard.units.begin(), shard.units.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, order_) << "every unit in one shard";
  EXPECT_LT(shards.size(), 60u) << "what fitted before stays merged";
}

TEST(Superadditive, NLogNIs) {
  // The reason why no sum of costs is taken for the merged cost.
  const auto cost = [](double n) { return n * std::log2(n + 2); };
  for (const double a : {1.0, 3.0, 100.0, 1e6})
    for (const double b : {1.0, 7.0, 1e5}) EXPECT_GE(cost(a + b), cost(a) + cost(b));
}

}  // namespace
}  // namespace furlong::shard
