#include "furlong/stats/heat_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace furlong::stats {
namespace {

const std::vector<std::size_t> kSurvivors{0, 2, 5, 7};

TEST(HeatOrder, HoldsEverySurvivorOnceAndBaseTwice) {
  for (std::uint64_t heat = 0; heat < 200; ++heat) {
    auto order = heat_order(kSurvivors, heat, 9);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 0, 2, 5, 7}));
  }
  EXPECT_EQ(heat_order({}, 0, 1).size(), 2u);
}

TEST(HeatOrder, RepeatsFromTheSeedAndDiffersBetweenHeats) {
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t heat = 0; heat < 50; ++heat) {
    EXPECT_EQ(heat_order(kSurvivors, heat, 9), heat_order(kSurvivors, heat, 9));
    seen.insert(heat_order(kSurvivors, heat, 9));
  }
  EXPECT_GT(seen.size(), 20u);
  EXPECT_NE(heat_order(kSurvivors, 0, 9), heat_order(kSurvivors, 0, 10));
}

TEST(HeatOrder, EveryPlaceIsEquallyLikely) {
  std::vector<int> first(8, 0);
  constexpr int kHeats = 5000;
  for (int heat = 0; heat < kHeats; ++heat)
    ++first[heat_order(kSurvivors, static_cast<std::uint64_t>(heat), 3).front()];
  EXPECT_NEAR(first[0], 0.4 * kHeats, 200);
  for (const std::size_t v : {2, 5, 7}) EXPECT_NEAR(first[v], 0.2 * kHeats, 170);
}

}  // namespace
}  // namespace furlong::stats
