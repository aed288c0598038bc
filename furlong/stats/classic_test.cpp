#include "furlong/stats/classic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace furlong::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Rounds = std::vector<std::vector<double>>;

TEST(Classic, FastestWinsBeyondTheMargin) {
  EXPECT_EQ(classic(Rounds{{1.0, 0.99, 0.98}}).winner, 2u);
  EXPECT_EQ(classic(Rounds{{1.0, 0.996, 1.2}}).winner, 0u);
  EXPECT_NEAR(classic(Rounds{{1.0, 0.8}}).gain[1], 0.25, 1e-12);
}

TEST(Classic, TheMarginItselfIsNotEnoughAndTheFirstOfEqualsWins) {
  EXPECT_EQ(classic(Rounds{{1.25, 1.0}}, {.margin = 0.25}).winner, 0u);
  EXPECT_EQ(classic(Rounds{{1.0, 0.5, 0.5}}).winner, 1u);
}

TEST(Classic, MedianOverRoundsShrugsOffOneBadTurn) {
  EXPECT_EQ(classic(Rounds{{5.0, 1.0}, {1.0, 1.0}, {1.0, 1.0}}).winner, 0u);
  EXPECT_EQ(classic(Rounds{{1.0, 0.9}, {1.0, 5.0}, {1.0, 0.9}}).winner, 1u);
}

TEST(Classic, UntimedVariantsDoNotWin) {
  const auto result = classic(Rounds{{1.0, kNaN, 0.0, -1.0, 0.9}});
  EXPECT_EQ(result.winner, 4u);
  EXPECT_TRUE(std::isnan(result.gain[1]));
  EXPECT_TRUE(std::isnan(result.gain[2]));
  EXPECT_TRUE(std::isnan(result.gain[3]));
  EXPECT_EQ(classic(Rounds{{kNaN, 0.5}}).winner, 0u);
  EXPECT_EQ(classic({}).winner, 0u);
}

}  // namespace
}  // namespace furlong::stats
