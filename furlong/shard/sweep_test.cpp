#include "furlong/shard/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "furlong/base/json.h"
#include "furlong/shard/internal/synthetic_profile.h"

namespace furlong::shard {
namespace {

using ::testing::HasSubstr;

// base <- left <- top, base <- right, alone; W 1, 10, 100, 1000, 5; one item of 10 bytes each.
Profile sample() {
  Profile p;
  p.executor = "synthetic";
  p.features = {"x"};
  p.counters = {{3, 1, 3, 2, 9}};
  p.references.emplace();
  for (const char* name : {"base", "left", "top", "right", "alone"}) {
    p.keys.push_back(blake2b_256(name));
    p.names.emplace_back(name);
    p.states.push_back(UnitState::measured);
    p.record_bytes.push_back(1);
    p.item_bytes.push_back(10);
    p.first_item.push_back(p.items());
  }
  p.work = {1, 10, 100, 1000, 5};
  p.references->add({});
  p.references->add(std::vector<std::uint32_t>{0});
  p.references->add(std::vector<std::uint32_t>{1});
  p.references->add(std::vector<std::uint32_t>{0});
  p.references->add({});
  return p;
}

Sweep good(const Profile& profile, const SweepRequest& request) {
  auto found = sweep(profile, request);
  if (!found) throw std::runtime_error(found.error().text());
  return std::move(*found);
}

TEST(Top, ListsTheUnitsWithMostOfACounter) {
  const Profile p = sample();
  const auto units = top(p, "x", 3);
  ASSERT_TRUE(units) << units.error().text();
  ASSERT_EQ(units->size(), 3u);
  EXPECT_EQ((*units)[0].name, "alone");
  EXPECT_EQ((*units)[0].share, 0.5);
  EXPECT_EQ((*units)[1].name, "base") << "of equals the earlier one";
  EXPECT_EQ((*units)[2].name, "top");
  EXPECT_EQ(top(p, "work", 99)->size(), 5u);
  EXPECT_EQ(top(p, "work", 1)->front().value, 1000);
  EXPECT_EQ(top(p, "item_bytes", 1)->front().name, "top") << "its closure has three items";
  EXPECT_THAT(top(p, "wrok", 1).error().text(), HasSubstr("does not count 'wrok'"));
  Profile partly = p;
  partly.states[3] = UnitState::unknown;
  EXPECT_EQ(top(partly, "work", 1)->front().name, "top") << "of what was measured";
  EXPECT_THAT(top_text(*units, "x"), HasSubstr("50.00%"));
  const auto json = json_parse(top_json(*units, "x"), "top");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["units"][0]["name"], "alone");
}

TEST(SweepTest, PricesTheClosuresOfRoots) {
  const Sweep all = good(sample(), {});
  ASSERT_EQ(all.roots.size(), 3u) << "those that nobody refers to";
  EXPECT_EQ(all.roots[0].name, "alone");
  EXPECT_EQ(all.roots[1].name, "top");
  EXPECT_EQ(all.roots[1].closure_units, 3u);
  EXPECT_EQ(all.roots[1].closure_bytes, 30u);
  EXPECT_EQ(all.roots[1].cost.work, 111);
  EXPECT_EQ(all.roots[2].cost.work, 1001);
  for (const SweepRoot& root : all.roots) EXPECT_TRUE(root.feasible);
  const Sweep named = good(sample(), {.roots = {"right", "left"}});
  ASSERT_EQ(named.roots.size(), 2u);
  EXPECT_EQ(named.roots[0].name, "left");
}

TEST(SweepTest, TellsWhatFitsABudget) {
  const SweepRequest request{.caps = {{"work", 500}}};
  const Sweep found = good(sample(), request);
  EXPECT_TRUE(found.roots[1].feasible);
  EXPECT_NEAR(found.roots[1].fill, 111 / 500.0, 1e-12);
  EXPECT_FALSE(found.roots[2].feasible);
  // The hottest unit is in no feasible root; it is named with the cheapest that there is.
  ASSERT_GE(found.hot.size(), 2u);
  EXPECT_EQ(found.hot[0].name, "right");
  EXPECT_EQ(found.roots[*found.hot[0].root].name, "right");
  EXPECT_EQ(found.hot[1].name, "top");
  Profile p = sample();
  p.states[0] = UnitState::failed;
  p.failed = {{0, Code::mismatch, "no"}};
  EXPECT_FALSE(good(p, {.roots = {"top"}}).roots[0].feasible) << "what failed cannot be had";
}

TEST(SweepTest, TheCheapestRootOfAHotUnitIsNamed) {
  const Sweep found = good(sample(), {.roots = {"top", "right", "left"}, .hot = 5});
  std::map<std::string, std::string> roots;
  for (const HotUnit& hot : found.hot) roots[hot.name] = hot.root ? found.roots[*hot.root].name : "none";
  EXPECT_EQ(roots,
            (std::map<std::string, std::string>{
                {"base", "left"}, {"left", "left"}, {"top", "top"}, {"right", "right"}, {"alone", "none"}}));
}

TEST(SweepTest, PicksAddMostOfWhatIsNotThereYet) {
  const Sweep found = good(sample(), {.roots = {"left", "top", "right", "alone"}, .picks = 9});
  std::vector<std::string> names;
  for (const Pick& pick : found.picks) names.push_back(found.roots[pick.root].name);
  EXPECT_EQ(names, (std::vector<std::string>{"right", "top", "alone"})) << "left adds nothing to top";
  EXPECT_EQ(found.picks[1].added_work, 110) << "the base is there already";
  EXPECT_DOUBLE_EQ(found.picks[2].covered, 1);
  // The same as picking without a queue of bounds.
  const Profile p = synthetic::make_profile(800, 5);
  const Sweep large = good(p, {.picks = 6});
  std::set<UnitIndex> covered;
  const std::vector<UnitIndex> owners = p.owners();
  const auto closure = [&](UnitIndex root) {
    std::set<UnitIndex> seen{root};
    std::vector<UnitIndex> next{root};
    while (!next.empty()) {
      const UnitIndex unit = next.back();
      next.pop_back();
      for (const std::uint32_t item : p.references->of(unit))
        if (seen.insert(owners[item]).second) next.push_back(owners[item]);
    }
    return seen;
  };
  for (const Pick& pick : large.picks) {
    double most = 0;
    for (const SweepRoot& root : large.roots) {
      double adds = 0;
      for (const UnitIndex unit : closure(root.unit)) adds += covered.contains(unit) ? 0 : p.work[unit];
      most = std::max(most, adds);
    }
    EXPECT_NEAR(pick.added_work, most, 1e-6 * most);
    covered.merge(closure(large.roots[pick.root].unit));
  }
}

TEST(SweepTest, WhatIsWrongIsNamed) {
  Profile p = sample();
  EXPECT_THAT(sweep(p, {.roots = {"rigth"}}).error().text(),
              HasSubstr("no unit is named 'rigth', did you mean 'right'?"));
  EXPECT_THAT(sweep(p, {.roots = {"top", "top"}}).error().text(), HasSubstr("'top' is named twice"));
  p.references.reset();
  EXPECT_THAT(sweep(p, {}).error().text(), HasSubstr("has no references"));
}

TEST(SweepTest, IsTextAndJson) {
  const Sweep found = good(sample(), {.caps = {{"work", 500}}});
  for (const char* part : {"root", "feasible", "hot unit", "pick", "alone", "no"})
    EXPECT_THAT(sweep_text(found), HasSubstr(part));
  const auto json = json_parse(sweep_json(found), "sweep");
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_EQ((*json)["roots"].size(), 3u);
  EXPECT_EQ((*json)["roots"][2]["feasible"], false);
  EXPECT_EQ((*json)["hot"][0]["root"], "right");
}

}  // namespace
}  // namespace furlong::shard
