#include "furlong/shard/profile_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "furlong/base/random.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"
#include "furlong/shard/internal/synthetic_profile.h"
#include "furlong/shard/make_profile.h"

namespace furlong::shard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One item of 10 bytes, W 1 and 1 record byte a unit; unit i has i + 1 of the feature "x".
Profile plain(UnitIndex units) {
  Profile p;
  p.store = blake2b_256("store");
  p.executor = "synthetic";
  p.executor_version = 1;
  p.features = {"x"};
  p.counters.resize(1);
  p.references.emplace();
  p.touched.emplace();
  for (UnitIndex unit = 0; unit < units; ++unit) {
    p.keys.push_back(blake2b_256(fmt::format("{}", unit)));
    p.names.push_back(fmt::format("u{}", unit));
    p.states.push_back(UnitState::measured);
    p.work.push_back(1);
    p.record_bytes.push_back(1);
    p.counters[0].push_back(unit + 1.0);
    p.item_bytes.push_back(10);
    p.first_item.push_back(unit + 1);
    p.references->add({});
    p.touched->add(std::vector<std::uint32_t>{unit});
  }
  return p;
}

void set_list(ItemLists& lists, UnitIndex unit, std::vector<std::uint32_t> wanted) {
  ItemLists changed;
  for (UnitIndex other = 0; other + 1 < lists.first.size(); ++other) {
    const auto old = lists.of(other);
    changed.add(other == unit ? std::span<const std::uint32_t>(wanted) : old);
  }
  lists = std::move(changed);
}

// `unit` refers to and touches the item of `other`, which comes before it.
void share(Profile& p, UnitIndex unit, UnitIndex other) {
  set_list(*p.references, unit, {other});
  set_list(*p.touched, unit, {other, unit});
}

PackOutcome pack(const Profile& profile, PackRequest request) {
  auto outcome = pack_profile(profile, request);
  if (!outcome) throw std::runtime_error(outcome.error().text());
  return std::move(*outcome);
}

std::vector<std::vector<UnitIndex>> units_of(const Plan& plan) {
  std::vector<std::vector<UnitIndex>> list;
  for (const PlanShard& shard : plan.shards) list.push_back(shard.units);
  return list;
}

// Each unit that did not fail is in exactly one shard, in plain order; the file's reader has nothing to say.
void expect_whole(const Plan& plan, const Profile& profile) {
  std::vector<int> seen(profile.units());
  for (const PlanShard& shard : plan.shards) {
    EXPECT_FALSE(shard.units.empty());
    EXPECT_TRUE(std::is_sorted(shard.units.begin(), shard.units.end()));
    for (const UnitIndex unit : shard.units) ++seen[unit];
  }
  for (UnitIndex unit = 0; unit < profile.units(); ++unit)
    EXPECT_EQ(seen[unit], profile.states[unit] == UnitState::failed ? 0 : 1) << unit;
  const auto read = parse_plan(print_plan(plan), "p.fsp");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, plan);
}

TEST(Pack, FillsShardsToTheCap) {
  const Profile p = plain(10);
  const PackOutcome outcome = pack(p, {.caps = {{"units", 3}}});
  EXPECT_EQ(units_of(outcome.plan),
            (std::vector<std::vector<UnitIndex>>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}}));
  expect_whole(outcome.plan, p);
  EXPECT_EQ(outcome.lower_bound, 4u);
  EXPECT_EQ(outcome.plan.shards[0].cost_kind, CostKind::profile_units);
  EXPECT_EQ(outcome.plan.shards[0].cost, 3);
  EXPECT_EQ(outcome.counters[1].at("x"), 4 + 5 + 6);
  EXPECT_TRUE(outcome.giants.empty());
}

TEST(Pack, EachCapReactsToItsOwnCounterAlone) {
  const Profile p = plain(12);
  const PackOutcome loose = pack(
      p, {.caps = {{"units", 100}, {"x", 1000}, {"item_bytes", 1000}, {"work", 100}, {"record_bytes", 100}}});
  EXPECT_EQ(loose.plan.shards.size(), 1u);
  for (const auto& [name, cap] : std::map<std::string, double>{
           {"units", 5}, {"x", 40}, {"item_bytes", 55}, {"work", 5}, {"record_bytes", 5}}) {
    PackRequest request{
        .caps = {{"units", 100}, {"x", 1000}, {"item_bytes", 1000}, {"work", 100}, {"record_bytes", 100}}};
    request.caps[name] = cap;
    const PackOutcome outcome = pack(p, request);
    EXPECT_GT(outcome.plan.shards.size(), 1u) << name;
    for (const Counters& counters : outcome.counters) EXPECT_LE(counters.at(name), cap) << name;
  }
}

TEST(Pack, EveryTermOfTheModelIsTestedByItself) {
  const Profile p = plain(12);
  for (const auto& [feature, coefficient] :
       std::map<std::string, double>{{"x", 10}, {"item_bytes", 8}, {"units", 80}, {"work", 80}}) {
    Model model;
    model.work = {TermSum{0, {{feature, TermForm::linear, coefficient}}}, {}};
    model.memory = {Line{0, 1}, {}};
    model.record_bytes = {TermSum{}, {}};
    const PackOutcome outcome = pack(p, {.sizing = {.budget_bytes = 400, .usable = 1}, .model = model});
    EXPECT_GT(outcome.plan.shards.size(), 1u) << feature;
    EXPECT_TRUE(outcome.giants.empty());
    for (const PlanShard& shard : outcome.plan.shards) {
      EXPECT_EQ(shard.cost_kind, CostKind::work);
      EXPECT_LT(shard.cost, 400) << feature;
    }
  }
}

TEST(Pack, ASharedItemCountsOnceAShard) {
  Profile p = plain(7);
  p.item_bytes[0] = 50;
  for (UnitIndex unit = 1; unit < 7; ++unit) share(p, unit, 0);
  const PackOutcome outcome = pack(p, {.caps = {{"item_bytes", 110}}});
  EXPECT_EQ(outcome.plan.shards.size(), 1u) << "50 + 6 * 10, not 6 * 60";
  EXPECT_EQ(outcome.counters[0].at("item_bytes"), 110);
  const PackOutcome two = pack(p, {.caps = {{"item_bytes", 80}}});
  ASSERT_EQ(two.plan.shards.size(), 2u);
  EXPECT_EQ(two.counters[0].at("item_bytes"), 80);
  EXPECT_EQ(two.counters[1].at("item_bytes"), 50 + 30) << "and again in the other shard";
  EXPECT_EQ(two.plan.shards[1].cross_bytes, 50u);
  EXPECT_EQ(two.plan.shards[1].foreign, 1u);
  EXPECT_EQ(two.plan.shards[0].cross_bytes, 0u);
}

TEST(Pack, TheClosureIsCountedWhereNoTouchGraphWasRecorded) {
  Profile p = plain(4);
  p.references->items.clear();
  p.references->first.assign(1, 0);
  p.references->add({});
  p.references->add(std::vector<std::uint32_t>{0});
  p.references->add(std::vector<std::uint32_t>{1});
  p.references->add(std::vector<std::uint32_t>{2});
  const PackRequest request{.caps = {{"item_bytes", 35}}};
  EXPECT_EQ(pack(p, request).accounting, Accounting::touched);
  EXPECT_EQ(pack(p, request).plan.shards.size(), 2u) << "nobody touched what it refers to";
  p.touched.reset();
  const PackOutcome closure = pack(p, request);
  EXPECT_EQ(closure.accounting, Accounting::closure);
  EXPECT_EQ(units_of(closure.plan), (std::vector<std::vector<UnitIndex>>{{0, 1, 2}, {3}}))
      << "3 needs 2, 1 and 0 as well";
  EXPECT_EQ(closure.counters[1].at("item_bytes"), 40);
  EXPECT_EQ(closure.giants, std::vector<ShardId>{1}) << "40 bytes by itself";
  p.references.reset();
  const PackOutcome own = pack(p, request);
  EXPECT_EQ(own.accounting, Accounting::own);
  EXPECT_FALSE(own.cross_known);
  EXPECT_THAT(own.text(), HasSubstr("what units refer to is unknown"));
  expect_whole(own.plan, p);
}

TEST(Pack, TouchedItemsNeverExceedTheClosure) {
  Random random(11);
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const Profile p = synthetic::make_profile(600, seed);
    for (int i = 0; i < 40; ++i) {
      std::vector<UnitIndex> units;
      for (UnitIndex unit = 0; unit < p.units(); ++unit)
        if (random.uniform() < 0.05) units.push_back(unit);
      const double touched = profile_counters(p, units, Accounting::touched).at("item_bytes");
      const double closure = profile_counters(p, units, Accounting::closure).at("item_bytes");
      EXPECT_LE(touched, closure);
      EXPECT_GE(touched, profile_counters(p, units, Accounting::own).at("item_bytes"));
    }
    const PackRequest cap{.caps = {{"item_bytes", 4e6}}};
    PackRequest by_closure = cap;
    by_closure.accounting = Accounting::closure;
    EXPECT_LE(pack(p, cap).plan.shards.size(), pack(p, by_closure).plan.shards.size());
  }
}

// What a shard is said to need is counted anew here: a unit that was weighed and not taken left nothing
// behind.
TEST(Pack, ARejectedUnitLeavesNoMark) {
  const Profile p = synthetic::make_profile(1500, 3);
  for (const Accounting accounting : {Accounting::touched, Accounting::closure})
    for (const std::uint32_t open : {1u, 3u, 8u}) {
      const PackOutcome outcome =
          pack(p, {.caps = {{"item_bytes", 3e6}, {"rows", 4000}}, .accounting = accounting, .open = open});
      expect_whole(outcome.plan, p);
      EXPECT_GT(outcome.plan.shards.size(), 10u);
      for (std::size_t i = 0; i < outcome.plan.shards.size(); ++i) {
        const Counters anew = profile_counters(p, outcome.plan.shards[i].units, accounting);
        for (const auto& [name, value] : anew)
          EXPECT_NEAR(outcome.counters[i].at(name), value, 1e-6 * value) << name;
      }
    }
}

TEST(Pack, AGiantIsFlaggedAndStandsAlone) {
  Profile p = plain(6);
  p.counters[0] = {1, 1, 1, 500, 1, 1};
  const PackOutcome outcome = pack(p, {.caps = {{"x", 10}}});
  EXPECT_EQ(units_of(outcome.plan), (std::vector<std::vector<UnitIndex>>{{0, 1, 2, 4, 5}, {3}}));
  EXPECT_EQ(outcome.giants, std::vector<ShardId>{1});
  EXPECT_EQ(outcome.lower_bound, 2u);
  EXPECT_THAT(outcome.text(), HasSubstr("1 units fit into no shard"));
  expect_whole(outcome.plan, p);
  p.counters[0] = {500, 500, 500, 500, 500, 500};
  EXPECT_EQ(pack(p, {.caps = {{"x", 10}}}).giants.size(), 6u);
}

TEST(Pack, AllUnknownCostsFallBackToPlanOrder) {
  Profile p = plain(9);
  for (UnitIndex unit = 0; unit < 9; ++unit) {
    p.states[unit] = UnitState::unknown;
    p.work[unit] = 0;
    p.record_bytes[unit] = 0;
    p.counters[0][unit] = 0;
    set_list(*p.touched, unit, {});
  }
  // The items' bytes stand for the record.
  const PackOutcome outcome = pack(p, {.sizing = {.budget_bytes = 41, .usable = 1}});
  EXPECT_EQ(units_of(outcome.plan), (std::vector<std::vector<UnitIndex>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8}}));
  EXPECT_EQ(outcome.plan.order, "profile, plain");
  EXPECT_EQ(outcome.guessed, 9u);
  for (const PlanShard& shard : outcome.plan.shards) {
    EXPECT_EQ(shard.cost_kind, CostKind::unknown);
    EXPECT_EQ(shard.cost, 0);
  }
}

TEST(Pack, AUnitThatNobodyMeasuredCountsAsTheMean) {
  Profile p = plain(4);
  p.states[3] = UnitState::unknown;
  p.work = {2, 4, 6, 0};
  p.counters[0] = {10, 20, 30, 0};
  set_list(*p.touched, 3, {});
  const PackOutcome outcome = pack(p, {.caps = {{"units", 9}}});
  EXPECT_EQ(outcome.guessed, 1u);
  EXPECT_EQ(outcome.plan.shards[0].cost, 2 + 4 + 6 + 4);
  EXPECT_EQ(outcome.counters[0].at("x"), 80);
  EXPECT_EQ(outcome.counters[0].at("item_bytes"), 40) << "its closure, since nobody knows what it touches";
}

TEST(Pack, FailedUnitsAreInNoShard) {
  Profile p = plain(5);
  p.states[2] = UnitState::failed;
  p.failed = {{2, Code::exhausted, "over the cap"}};
  const PackOutcome outcome = pack(p, {.caps = {{"units", 2}}});
  EXPECT_EQ(units_of(outcome.plan), (std::vector<std::vector<UnitIndex>>{{0, 1}, {3, 4}}));
  EXPECT_EQ(outcome.plan.failed, p.failed);
  expect_whole(outcome.plan, p);
}

// n log n of a sum is more than the sum of both: two halves that fit by sum do not fit together, and the
// planner keeps them apart.
TEST(Pack, SegmentsThatFitBySumButNotTogetherStayApart) {
  Profile p = plain(2);
  p.counters[0] = {1000, 1000};
  Model model;
  model.work = {TermSum{0, {{"x", TermForm::nlogn, 1}}}, {}};
  model.memory = {Line{0, 1}, {}};
  model.record_bytes = {TermSum{}, {}};
  const double sum = 2 * nlogn(1000), together = nlogn(2000);
  ASSERT_LT(sum, together);
  PackRequest request{.sizing = {.usable = 1}, .model = model};
  request.sizing.budget_bytes = static_cast<std::uint64_t>((sum + together) / 2);
  EXPECT_EQ(pack(p, request).plan.shards.size(), 2u);
  request.sizing.budget_bytes = static_cast<std::uint64_t>(together + 2);
  EXPECT_EQ(pack(p, request).plan.shards.size(), 1u);
}

TEST(Pack, UnitsGoWhereTheyShare) {
  // Two large items, used by turns: plain order would have both in each shard.
  Profile p = plain(42);
  p.item_bytes[0] = p.item_bytes[1] = 1000;
  for (UnitIndex unit = 2; unit < 42; ++unit) share(p, unit, unit % 2);
  const PackRequest request{.caps = {{"item_bytes", 1240}}};
  const PackOutcome outcome = pack(p, request);
  EXPECT_EQ(outcome.plan.shards.size(), 2u);
  EXPECT_EQ(outcome.plan.shards[0].cross_bytes + outcome.plan.shards[1].cross_bytes, 0u);
  PackRequest next_fit = request;
  next_fit.open = 1;
  next_fit.order = OrderKind::plain;
  EXPECT_GT(pack(p, next_fit).plan.shards.size(), 10u);
  next_fit.order = OrderKind::sharing;
  EXPECT_LE(pack(p, next_fit).plan.shards.size(), 3u);
}

TEST(Pack, IsDeterministicAndNeverBelowTheBound) {
  for (std::uint64_t seed = 1; seed < 8; ++seed) {
    const Profile p = synthetic::make_profile(2000, seed);
    Model model;
    model.work = {TermSum{100, {{"rows", TermForm::nlogn, 8}, {"item_bytes", TermForm::linear, 2}}}, {}};
    model.memory = {Line{1e6, 1}, {}};
    const PackRequest request{
        .sizing = {.budget_bytes = 12'000'000}, .model = model, .caps = {{"distinct_work", 9000}}};
    const PackOutcome one = pack(p, request), two = pack(p, request);
    EXPECT_EQ(print_plan(one.plan), print_plan(two.plan));
    EXPECT_GE(one.plan.shards.size(), one.lower_bound);
    EXPECT_LE(one.plan.shards.size(), std::min(one.plain_shards, one.sharing_shards));
    for (std::size_t i = 0; i < one.plan.shards.size(); ++i) {
      Cost cost;
      cost.work = one.plan.shards[i].cost;
      cost.record_bytes = one.plan.shards[i].record_bytes;
      EXPECT_EQ(one.plan.sizing.reaches_cut(cost), std::count(one.giants.begin(), one.giants.end(), i) > 0);
    }
  }
}

TEST(Pack, WhatIsWrongIsNamed) {
  const Profile p = plain(3);
  const auto error = [&](const PackRequest& request) { return pack_profile(p, request).error().text(); };
  EXPECT_THAT(error({}), HasSubstr("nothing to cut by"));
  EXPECT_THAT(error({.caps = {{"unit", 3}}}), HasSubstr("does not count 'unit'"));
  EXPECT_THAT(error({.caps = {{"x", 0}}}), HasSubstr("must be above 0"));
  Model model;
  model.memory = {Line{0, 1}, {}};
  model.work = {TermSum{0, {{"y", TermForm::linear, 1}}}, {}};
  EXPECT_THAT(error({.sizing = {.budget_bytes = 100}, .model = model}),
              HasSubstr("the model's W: the profile does not count 'y'"));
  EXPECT_THAT(error({.sizing = {.budget_seconds = 1}, .model = model}), HasSubstr("how long a job takes"));
  Profile bare = p;
  bare.touched.reset();
  EXPECT_EQ(pack_profile(bare, {.caps = {{"x", 9}}, .accounting = Accounting::touched}).error().code(),
            Code::invalid);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(pack_profile(p, {.caps = {{"x", 9}}, .stop = source.get_token()}).error().code(), Code::timeout);
}

class ProfilePlanOfStore : public StoreFixture {};

TEST_F(ProfilePlanOfStore, APlanFromAProfileCoversItsStoreAndItsCostsAreFittedOn) {
  synthetic::SyntheticExecutor executor;
  std::vector<synthetic::Script> scripts;
  for (int i = 0; i < 60; ++i)
    scripts.push_back({fmt::format("u{}", i), fmt::format("bytes={} rows={}-{}", 10 + i, i, i + 8), {}, {}});
  make_store(scripts);
  const auto made = make_profile(store_, executor, {});
  ASSERT_TRUE(made) << made.error().text();
  const PackOutcome outcome = pack(made->profile, {.caps = {{"units", 7}}});
  EXPECT_TRUE(require_coverage(outcome.plan, *store_));
  std::vector<FitRun> runs;
  for (const PlanShard& shard : outcome.plan.shards)
    runs.push_back({.name = fmt::format("shard {}", shard.id)});
  ASSERT_TRUE(use_profile(runs, outcome.plan, made->profile));
  EXPECT_EQ(runs[2].counters, outcome.counters[2]);
  runs.push_back({.name = "shard 77"});
  EXPECT_THAT(use_profile(runs, outcome.plan, made->profile).error().text(),
              HasSubstr("the plan has no shard 77"));
  Plan other = outcome.plan;
  other.store = blake2b_256("another");
  EXPECT_EQ(use_profile(runs, other, made->profile).error().code(), Code::mismatch);
}

BalanceOutcome balance(const Profile& profile, std::uint32_t shards) {
  auto outcome = balance_profile(profile, {.shards = shards});
  if (!outcome) throw std::runtime_error(outcome.error().text());
  return std::move(*outcome);
}

TEST(Balance, MakesThatManyEqualShards) {
  Profile p = synthetic::make_profile(3000, 2);
  for (double& work : p.work) work = std::min(work, 3000.0);  // no unit that is a share of a shard by itself
  for (const std::uint32_t shards : {1u, 2u, 7u, 16u}) {
    const BalanceOutcome outcome = balance(p, shards);
    ASSERT_EQ(outcome.plan.shards.size(), shards);
    expect_whole(outcome.plan, p);
    EXPECT_GE(outcome.lightest, 0.95) << shards;
    EXPECT_LE(outcome.heaviest, 1.05) << shards;
    EXPECT_EQ(print_plan(balance(p, shards).plan), print_plan(outcome.plan));
  }
}

TEST(Balance, TheObjectiveIsTheSumOfTheShardsCrossBytes) {
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    Profile p = synthetic::make_profile(1200, seed);
    if (seed % 2 == 0) {  // units that failed are in no shard, and others may refer to them
      p.states[20] = UnitState::failed;
      p.failed = {{20, Code::mismatch, "no"}};
      set_list(*p.touched, 20, {});
    }
    const BalanceOutcome outcome = balance(p, 8);
    std::uint64_t sum = 0;
    for (const PlanShard& shard : outcome.plan.shards) sum += shard.cross_bytes;
    EXPECT_EQ(outcome.objective_bytes, sum);
    EXPECT_GT(sum, 0u);
    expect_whole(outcome.plan, p);
  }
}

TEST(Balance, CutsLessThanRunsOfThePlainOrder) {
  const Profile p = synthetic::make_profile(3000, 4);
  const BalanceOutcome outcome = balance(p, 8);
  Plan runs = outcome.plan;
  for (std::size_t i = 0; i < 8; ++i) {
    runs.shards[i].units.resize(375);
    std::iota(runs.shards[i].units.begin(), runs.shards[i].units.end(), static_cast<UnitIndex>(375 * i));
  }
  const auto sharing = profile_sharing(p);
  ASSERT_TRUE(sharing);
  std::uint64_t sum = 0;
  for (const PlanShard& shard : runs.shards) sum += sharing->cross(shard.units).bytes;
  EXPECT_LT(outcome.objective_bytes, sum);
}

TEST(Balance, NoShardIsEmpty) {
  for (const UnitIndex units : {5u, 9u, 40u})
    for (std::uint32_t shards = 1; shards <= std::min(units, 12u); ++shards) {
      Profile p = plain(units);
      p.work[0] = 1000;  // one unit that outweighs all others
      for (UnitIndex unit = 1; unit < units; ++unit) share(p, unit, 0);
      const BalanceOutcome outcome = balance(p, shards);
      ASSERT_EQ(outcome.plan.shards.size(), shards);
      expect_whole(outcome.plan, p);
    }
  EXPECT_THAT(balance_profile(plain(5), {.shards = 6}).error().text(), HasSubstr("give 1 to 5"));
  EXPECT_EQ(balance_profile(plain(5), {.shards = 0}).error().code(), Code::invalid);
}

TEST(Balance, UnknownCostsAndUnknownSharingAreBalancedAllTheSame) {
  Profile p = plain(40);
  for (UnitIndex unit = 0; unit < 40; ++unit) {
    p.states[unit] = UnitState::unknown;
    p.work[unit] = 0;
    p.item_bytes[unit] = unit < 20 ? 10 : 30;
    set_list(*p.touched, unit, {});
  }
  p.touched.reset();
  p.references.reset();
  const BalanceOutcome outcome = balance(p, 4);
  EXPECT_FALSE(outcome.cross_known);
  EXPECT_EQ(outcome.plan.shards[0].units.size(), 20u) << "by own bytes";
  EXPECT_EQ(outcome.plan.shards[0].own_bytes, 200u);
  EXPECT_EQ(outcome.plan.shards[0].cost_kind, CostKind::unknown);
  expect_whole(outcome.plan, p);
}

}  // namespace
}  // namespace furlong::shard
