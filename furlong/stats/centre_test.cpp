#include "furlong/stats/centre.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "furlong/base/random.h"

namespace furlong::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Centre, MedianOfFewValues) {
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_EQ(median(std::vector<double>{3}), 3);
  EXPECT_EQ(median(std::vector<double>{3, 1}), 2);
  EXPECT_EQ(median(std::vector<double>{3, 1, 100}), 3);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median(std::vector<double>{1, kNaN, 2})));
}

TEST(Centre, MedianDoesNotOverflowBetweenLargeValues) {
  const double big = std::numeric_limits<double>::max();
  EXPECT_EQ(median(std::vector<double>{big, big}), big);
}

TEST(Centre, MedianMatchesSorting) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values(1 + random.below(40));
    for (double& v : values) v = std::round(10 * random.normal());  // with ties
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    const double expected = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    EXPECT_EQ(median(values), expected);
    EXPECT_EQ(quantile(values, 0.5), expected);
    EXPECT_EQ(quantile(values, 0), sorted.front());
    EXPECT_EQ(quantile(values, 1), sorted.back());
  }
}

TEST(Centre, QuantileInterpolatesAsTypeSeven) {
  const std::vector<double> values{40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 17.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);
  EXPECT_TRUE(std::isnan(quantile(values, -0.1)));
  EXPECT_TRUE(std::isnan(quantile(values, kNaN)));
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Centre, ScalesEstimateTheDeviationOfGaussianNoise) {
  Random random(5);
  std::vector<double> values(40000);
  for (double& v : values) v = 7 + 2 * random.normal();
  EXPECT_NEAR(mean(values), 7, 0.05);
  EXPECT_NEAR(deviation(values), 2, 0.03);
  EXPECT_NEAR(mad_scale(values), 2, 0.05);
  EXPECT_NEAR(trimmed_centre(values, 0.2), 7, 0.05);
}

TEST(Centre, WildValuesMoveTheMeanButNotTheRobustEstimates) {
  Random random(6);
  std::vector<double> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 10 == 0 ? 1e6 : random.normal();
  EXPECT_GT(mean(values), 1e4);
  EXPECT_GT(deviation(values), 1e4);
  EXPECT_NEAR(median(values), 0, 0.3);
  EXPECT_NEAR(mad_scale(values), 1, 0.3);
  EXPECT_NEAR(trimmed_centre(values, 0.2), 0, 0.3);
}

TEST(Centre, TrimmedCentreEndsAtMeanAndMedian) {
  const std::vector<double> values{1, 2, 3, 4, 1000};
  EXPECT_DOUBLE_EQ(trimmed_centre(values, 0), 202);
  EXPECT_DOUBLE_EQ(trimmed_centre(values, 0.2), 3);
  EXPECT_DOUBLE_EQ(trimmed_centre(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(trimmed_centre(std::vector<double>{1, 3}, 0.5), 2);
  EXPECT_TRUE(std::isnan(trimmed_centre({}, 0.1)));
  EXPECT_TRUE(std::isnan(mad_scale({})));
  EXPECT_TRUE(std::isnan(deviation(std::vector<double>{1})));
}

TEST(Centre, ClipAndItsVariance) {
  EXPECT_EQ(clip(5, 1, 2), 3);
  EXPECT_EQ(clip(-5, 1, 2), -1);
  EXPECT_EQ(clip(1.5, 1, 2), 1.5);
  EXPECT_NEAR(clipped_variance(10), 1, 1e-12);
  EXPECT_NEAR(clipped_variance(0), 0, 1e-12);
  Random random(7);
  double squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) squares += std::pow(clip(random.normal(), 0, 1.5), 2);
  EXPECT_NEAR(squares / kDraws, clipped_variance(1.5), 0.01);
}

}  // namespace
}  // namespace furlong::stats
