#include "furlong/stats/internal/window_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "furlong/base/random.h"
#include "furlong/stats/centre.h"

namespace furlong::stats::internal {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class Draw>
LogHeat make(std::size_t variants, Draw draw) {
  LogHeat heat{{}, draw()};
  for (std::size_t v = 0; v < variants; ++v) heat.log_cost.push_back(draw());
  return heat;
}

TEST(WindowFilter, HoldsTheOpeningBackAndThenGivesOneSampleAHeat) {
  Random random(1);
  WindowFilter filter(3, 4, 3);
  for (int h = 0; h < 3; ++h) {
    EXPECT_TRUE(filter.opening());
    EXPECT_TRUE(filter.add(make(3, [&] { return 0.001 * random.normal(); })).empty());
  }
  EXPECT_EQ(filter.add(make(3, [&] { return 0.001 * random.normal(); })).size(), 4u);
  EXPECT_FALSE(filter.opening());
  EXPECT_EQ(filter.add(make(3, [&] { return 0.001 * random.normal(); })).size(), 1u);
}

TEST(WindowFilter, CommonLevelCancelsAndGainsComeThrough) {
  // Exact windows, a level that jumps by 10% from heat to heat.
  WindowFilter filter(3, 4, 3);
  for (int h = 0; h < 10; ++h) {
    const double level = h % 2 ? 0.1 : 0;
    for (const auto& gains : filter.add({{level, level - 0.02, level + 0.3}, level})) {
      EXPECT_EQ(gains[0], 0);
      EXPECT_NEAR(gains[1], 0.02, 1e-12);
      EXPECT_NEAR(gains[2], -0.3, 1e-12);
    }
  }
}

TEST(WindowFilter, EstimatesTheNoiseOfOneWindow) {
  Random random(2);
  WindowFilter filter(9, 4, 3);
  for (int h = 0; h < 300; ++h) filter.add(make(9, [&] { return 0.002 * random.normal(); }));
  EXPECT_NEAR(filter.scale(), 0.002, 0.0002);
}

TEST(WindowFilter, WildWindowsArePulledInAlsoInTheOpening) {
  for (const int when : {1, 6}) {
    Random random(3);
    WindowFilter filter(6, 4, 3);
    double worst = 0;
    for (int h = 0; h < 10; ++h) {
      LogHeat heat = make(6, [&] { return 0.001 * random.normal(); });
      if (h == when) heat.base_again += 0.5;
      for (const auto& gains : filter.add(heat))
        for (double g : gains) worst = std::max(worst, std::abs(g));
    }
    EXPECT_LT(worst, 0.01) << when;
  }
}

TEST(WindowFilter, AVariantThatReallyChangedIsFollowed) {
  Random random(6);
  WindowFilter filter(3, 4, 3);
  std::vector<double> seen;
  for (int h = 0; h < 12; ++h) {
    LogHeat heat = make(3, [&] { return 0.001 * random.normal(); });
    if (h >= 6) heat.log_cost[1] += 0.05;
    for (const auto& gains : filter.add(heat)) seen.push_back(gains[1]);
  }
  EXPECT_NEAR(seen[5], 0, 0.005);
  EXPECT_GT(seen[6], -0.01) << "the first may be an accident";
  for (std::size_t h = 7; h < 12; ++h) EXPECT_NEAR(seen[h], -0.05, 0.005);
}

TEST(WindowFilter, HeavyTailsLeaveNoBias) {
  // One window in ten is slow by five scales on average: the gain of an equal variant stays 0, because base
  // and variant are pulled in alike. Clipping the ratios would not do: base's are a mean of two.
  Random random(4);
  WindowFilter filter(4, 4, 3);
  double sum = 0, squares = 0;
  int count = 0;
  for (int h = 0; h < 20000; ++h) {
    const auto draw = [&] {
      const double slow = random.uniform() < 0.1 ? -5 * std::log(1 - random.uniform()) : 0;
      return 0.001 * (random.normal() + slow);
    };
    for (const auto& gains : filter.add(make(4, draw))) {
      sum += gains[1];
      squares += gains[1] * gains[1];
      ++count;
    }
  }
  const double mean_gain = sum / count;
  const double error = std::sqrt(squares / count / count);
  EXPECT_LT(std::abs(mean_gain), 4 * error);
  EXPECT_LT(error, 2e-5);
}

TEST(WindowFilter, VariantsMayMissHeatsOrStartLate) {
  Random random(5);
  WindowFilter filter(3, 4, 3);
  int samples = 0;
  for (int h = 0; h < 12; ++h) {
    LogHeat heat = make(3, [&] { return 0.001 * random.normal(); });
    if (h < 6) heat.log_cost[2] = kNaN;
    if (h == 7) heat.log_cost[0] = kNaN;
    for (const auto& gains : filter.add(heat)) {
      EXPECT_TRUE(std::isfinite(gains[1]));
      samples += std::isfinite(gains[2]);
    }
  }
  EXPECT_EQ(samples, 6);
}

TEST(WindowFilter, EqualWindowsKeepAScaleAboveZero) {
  WindowFilter filter(3, 4, 3);
  for (int h = 0; h < 8; ++h) filter.add({{1, 1, 1}, 1});
  EXPECT_GT(filter.scale(), 0);
}

}  // namespace
}  // namespace furlong::stats::internal
