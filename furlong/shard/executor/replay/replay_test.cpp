#include "furlong/shard/executor/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/shard/executor/replay/internal/items.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic_profile.h"
#include "furlong/shard/make_plan.h"
#include "furlong/shard/make_profile.h"

namespace furlong::shard::replay {
namespace {

using ::testing::HasSubstr;

class ReplayTest : public StoreFixture {
 protected:
  std::shared_ptr<const Store> replay(const Profile& profile,
                                      std::uint64_t most_item_bytes = kMostItemBytes) {
    request_.input = folder_->path() / "p.fprof";
    request_.out = folder_->path() / "r.store";
    if (!write_profile(system_files(), request_.input, profile)) throw std::runtime_error("not written");
    auto report = make_replay_store(request_, most_item_bytes);
    if (!report) throw std::runtime_error(report.error().text());
    report_ = *report;
    auto store = Store::open(request_.out);
    if (!store) throw std::runtime_error(store.error().text());
    return *store;
  }
  Profile recorded(const std::shared_ptr<const Store>& store, const Executor& executor,
                   bool fail_fast = true) {
    ProfileRequest request;
    request.fail_fast = fail_fast;
    auto outcome = make_profile(store, executor, request);
    if (!outcome) throw std::runtime_error(outcome.error().text());
    return std::move(outcome->profile);
  }
  StoreRequest request_;
  StoreReport report_;
  const std::unique_ptr<Executor> executor_ = make_executor();
};

// What was recorded comes out again: a replay profiled is the profile, but for an item more a unit.
TEST_F(ReplayTest, UnitsCostWhatWasRecorded) {
  const Profile p = synthetic::make_profile(300, 1);
  const auto store = replay(p);
  EXPECT_EQ(report_.units, 300u);
  EXPECT_EQ(store->executor(), "replay");
  const Profile again = recorded(store, *executor_);
  EXPECT_EQ(again.names, p.names);
  EXPECT_EQ(again.work, p.work);
  EXPECT_EQ(again.record_bytes, p.record_bytes);
  EXPECT_EQ(again.features, p.features);
  EXPECT_EQ(again.counters, p.counters);
  for (UnitIndex unit = 0; unit < p.units(); ++unit) {
    ASSERT_EQ(again.references->of(unit).size(), p.references->of(unit).size());
    ASSERT_EQ(again.touched->of(unit).size(), p.touched->of(unit).size() + 1) << "and its own first item";
    for (std::size_t i = 0; i < p.references->of(unit).size(); ++i)
      EXPECT_EQ(again.owners()[again.references->of(unit)[i]], p.references->of(unit)[i]);
    // Its second item stands for the one that was recorded.
    EXPECT_EQ(again.item_bytes[2 * unit + 1], p.item_bytes[unit]);
  }
}

TEST_F(ReplayTest, PlansWithoutExecutingAnything) {
  const Profile p = synthetic::make_profile(400, 2);
  const auto store = replay(p);
  PlanRequest request;
  request.sizing.budget_bytes = 200'000;
  request.workers = 3;
  const auto outcome = make_plan(store, *executor_, request);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_TRUE(require_coverage(outcome->plan, *store));
  EXPECT_GT(outcome->plan.shards.size(), 3u);
  double work = 0;
  for (const PlanShard& shard : outcome->plan.shards) work += shard.cost;
  double recorded_work = 0;
  for (const double one : p.work) recorded_work += one;
  EXPECT_NEAR(work, recorded_work, 1e-6 * work);
}

TEST_F(ReplayTest, FailuresAndUnknownUnitsFailAgain) {
  Profile p = synthetic::make_profile(30, 3);
  p.states[4] = UnitState::failed;
  p.states[9] = UnitState::failed;
  p.failed = {{4, Code::mismatch, "step 7 is wrong"}, {9, Code::exhausted, "over the cap"}};
  p.states[12] = UnitState::unknown;
  const Profile again = recorded(replay(p), *executor_, false);
  ASSERT_EQ(again.failed.size(), 3u);
  EXPECT_EQ(again.failed[0], p.failed[0]);
  EXPECT_EQ(again.failed[1], p.failed[1]);
  EXPECT_EQ(again.failed[2].unit, 12u);
  EXPECT_THAT(again.failed[2].why, HasSubstr("nobody measured it"));
}

TEST_F(ReplayTest, WithoutATouchGraphAllIsTouchedAndWithoutReferencesNone) {
  Profile p = synthetic::make_profile(60, 4);
  p.touched.reset();
  const Profile all = recorded(replay(p), *executor_);
  for (UnitIndex unit = 0; unit < 60; ++unit)
    EXPECT_EQ(all.touched->of(unit).size(), 2 + p.references->of(unit).size());
  p.references.reset();
  const Profile none = recorded(replay(p), *executor_);
  EXPECT_TRUE(none.references->items.empty());
}

TEST_F(ReplayTest, LargeItemsAreScaled) {
  Profile p = synthetic::make_profile(40, 5);
  constexpr std::uint64_t kMost = 100'000;  // of about 300,000
  const auto store = replay(p, kMost);
  EXPECT_LT(report_.item_bytes, kMost + 40 * 1000) << "with what is said of the costs";
  bool told = false;
  for (const auto& [name, value] : report_.notes)
    told = told || (name == "item sizes divided by" && value != "1");
  EXPECT_TRUE(told);
  const Profile again = recorded(store, *executor_);
  EXPECT_NEAR(static_cast<double>(again.item_bytes[1]) / static_cast<double>(again.item_bytes[41]),
              static_cast<double>(p.item_bytes[0]) / static_cast<double>(p.item_bytes[20]), 1e-3);
}

TEST_F(ReplayTest, HasNoJobAndNoReceipts) {
  const auto store = replay(synthetic::make_profile(10, 1));
  const std::vector<UnitIndex> units{0, 1};
  const auto claim = make_claim(*store, units);
  const auto items = ClaimItems::open(store, units);
  ASSERT_TRUE(claim && items);
  const KeyPair key = KeyPair::generate();
  const std::vector<Unit> list{*store->unit(0), *store->unit(1)};
  const auto run = executor_->run(store->settings(), *claim, list, **items, {.signer = &key});
  EXPECT_EQ(run.error().code(), Code::invalid);
  EXPECT_THAT(run.error().text(), HasSubstr("a replay has no job"));
  EXPECT_EQ(executor_->verify(store->settings(), *claim, list, **items, {}, {}).error().code(),
            Code::invalid);
}

TEST_F(ReplayTest, ACapTripsAndLeavesTheRecordAsItWas) {
  const Profile p = synthetic::make_profile(5, 1);
  const auto store = replay(p);
  const auto record = executor_->begin(store->settings(), p.record_bytes[0] + p.record_bytes[1] - 1, {});
  const auto items = ClaimItems::open(store, std::vector<UnitIndex>{0, 1});
  ASSERT_TRUE(record && items);
  ASSERT_TRUE((*record)->add(*store->unit(0), **items));
  EXPECT_EQ((*record)->add(*store->unit(1), **items).error().code(), Code::exhausted);
  EXPECT_EQ((*record)->cost().record_bytes, p.record_bytes[0]);
  EXPECT_EQ((*record)->cost().work, p.work[0]);
}

TEST_F(ReplayTest, WhatIsNoProfileMakesNoStore) {
  request_.input = folder_->path() / "p.fprof";
  request_.out = folder_->path() / "r.store";
  EXPECT_EQ(make_replay_store(request_).error().code(), Code::unavailable);
  ASSERT_TRUE(system_files().write_atomic(request_.input, "no profile"));
  EXPECT_EQ(make_replay_store(request_).error().code(), Code::invalid);
  ASSERT_TRUE(write_profile(system_files(), request_.input, synthetic::make_profile(10, 1)));
  std::stop_source source;
  source.request_stop();
  request_.stop = source.get_token();
  EXPECT_EQ(make_replay_store(request_).error().code(), Code::timeout);
  EXPECT_FALSE(system_files().exists(request_.out));
  const ExecutorKind found = kind();
  EXPECT_EQ(found.name, "replay");
  EXPECT_NE(found.executor, nullptr);
}

TEST(ReplayItems, RoundTripAndDamageIsNamed) {
  CostItem item;
  item.unit = 7;
  item.cost.work = 0.1;
  item.cost.record_bytes = 99;
  item.cost.features = {{"rows", 3}};
  item.touched = {true, false, true};
  const auto read = parse_cost_item(print_cost_item(item));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(print_cost_item(*read), print_cost_item(item));
  for (const char* bad : {"", "{}", "[]", R"({"furlong_replay_unit":1,"unit":-1})",
                          R"({"furlong_replay_unit":1,"unit":1,"cost":{}})"})
    EXPECT_EQ(parse_cost_item(bad).error().code(), Code::corrupt) << bad;
  std::string other = print_cost_item(item);
  other[other.find(':') + 1] = '2';
  EXPECT_EQ(parse_cost_item(other).error().code(), Code::incompatible);
  EXPECT_EQ(check_settings(R"({"format":2,"scale":1})").error().code(), Code::incompatible);
  EXPECT_EQ(check_settings("{}").error().code(), Code::invalid);
  EXPECT_TRUE(check_settings(print_settings(3)));
}

}  // namespace
}  // namespace furlong::shard::replay
