#include "furlong/fleet/aggregate/internal/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "furlong/base/random.h"
#include "furlong/stats/centre.h"
#include "furlong/stats/confidence_sequence.h"

namespace furlong::fleet::internal {
namespace {

std::vector<Said> said_by_each(const std::vector<double>& values) {
  std::vector<Said> said;
  for (std::size_t i = 0; i < values.size(); ++i)
    said.push_back({values[i], 1, static_cast<std::uint32_t>(i)});
  sort_by_value(said);
  return said;
}

TEST(Interval, RanksAreThoseOfThePublishedTables) {
  // Conover, Practical Nonparametric Statistics, table A3 (p = 1/2); at 95%.
  const std::pair<std::size_t, std::size_t> known[] = {{5, 0},  {6, 1},  {8, 1},  {9, 2},
                                                       {12, 3}, {15, 4}, {20, 6}, {25, 8}};
  for (const auto& [n, rank] : known) EXPECT_EQ(order_rank(n, 0.05), rank) << n;
  EXPECT_EQ(order_rank(6, 0.01), 0u);
  EXPECT_EQ(order_rank(8, 0.01), 1u);
}

TEST(Interval, TheApproximationForManyVoicesIsNeverNarrower) {
  const double root = std::sqrt(1000.0) / 2;
  EXPECT_NEAR(static_cast<double>(order_rank(1000, 0.05)), 500 - 1.96 * root, 1.5);
  for (std::size_t n = 1001; n < 1100; ++n) {
    EXPECT_LE(order_rank(n, 0.05), order_rank(1000, 0.05) + (n - 1000) / 2 + 1);
    EXPECT_GT(order_rank(n, 0.05), 400u);
  }
}

TEST(Interval, WithEqualWeightsTheMedianIsThePlainOne) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<double> values(1 + random.below(30));
    for (double& value : values) value = static_cast<double>(random.below(20));
    const auto said = said_by_each(values);
    EXPECT_EQ(weighted_median(said), stats::median(values));
    EXPECT_NEAR(worth_of(said), static_cast<double>(values.size()), 1e-9);
  }
}

TEST(Interval, WeightsCountAsSoManyCopies) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    std::vector<Said> said;
    std::vector<double> copies;
    for (std::uint32_t voice = 0; voice < 1 + random.below(12); ++voice) {
      const auto weight = 1 + random.below(4);
      const auto value = static_cast<double>(random.below(50));
      said.push_back({value, 0.1 * static_cast<double>(weight), voice});
      copies.insert(copies.end(), weight, value);
    }
    sort_by_value(said);
    EXPECT_EQ(weighted_median(said), stats::median(copies));
  }
}

TEST(Interval, FewVoicesHaveStudentsInterval) {
  EXPECT_FALSE(median_interval(said_by_each({2}), 0.05));
  const auto two = median_interval(said_by_each({2.0, 2.2}), 0.05);
  ASSERT_TRUE(two);
  EXPECT_NEAR(two->lo, 2.1 - 12.706 * 0.1, 1e-3);
  EXPECT_NEAR(two->hi, 2.1 + 12.706 * 0.1, 1e-3);
  const auto five = median_interval(said_by_each({1, 2, 3, 4, 10}), 0.05);
  ASSERT_TRUE(five);
  EXPECT_LE(five->lo, 3);
  EXPECT_GE(five->hi, 3);
}

TEST(Interval, OfSixVoicesItIsTheirWholeRange) {
  const auto six = median_interval(said_by_each({1, 2, 3, 4, 5, 600}), 0.05);
  ASSERT_TRUE(six);
  EXPECT_EQ(*six, (record::Interval{1, 600}));
}

TEST(Interval, OneVoiceUnderTwoCapsIsOneVoice) {
  std::vector<Said> said{{1, 0.5, 0}, {2, 0.5, 0}, {3, 1, 1}};
  const Estimate estimate = estimate_of(said);
  EXPECT_EQ(estimate.machines, 2);
  EXPECT_EQ(estimate.median, 2.5);
}

// The promise itself: at most 5% of the intervals miss the true median, whatever the distribution.
TEST(Interval, CoversTheTrueMedian) {
  Random random(3);
  for (const int voices : {2, 3, 5, 6, 9, 12, 25, 60}) {
    for (const bool skewed : {false, true}) {
      // Student's interval is for scatter about a centre; a skewed one of two to five voices it does not
      // promise.
      if (skewed && voices < 6) continue;
      constexpr int times = 2000;
      int missed = 0;
      for (int i = 0; i < times; ++i) {
        std::vector<double> values(static_cast<std::size_t>(voices));
        for (double& value : values) value = skewed ? std::exp(2 * random.normal()) - 1 : random.normal();
        const auto interval = median_interval(said_by_each(values), 0.05);
        ASSERT_TRUE(interval);
        missed += interval->lo > 0 || interval->hi < 0;
      }
      // Three standard deviations of 2,000 tries.
      EXPECT_LE(missed, 0.05 * times + 3 * std::sqrt(0.05 * 0.95 * times)) << voices << ' ' << skewed;
    }
  }
}

// Both ends promise the same: turned round, values have their interval turned round.
TEST(Interval, IsTheSameFromBothEnds) {
  Random random(4);
  for (int i = 0; i < 2000; ++i) {
    std::vector<Said> said, mirrored;
    for (std::uint32_t voice = 0; voice < 6 + random.below(40); ++voice) {
      const double weight = i % 3 == 0 ? 1 : 0.2 + random.uniform();
      said.push_back({random.normal(), weight, voice});
      mirrored.push_back({-said.back().value, weight, voice});
    }
    sort_by_value(said);
    sort_by_value(mirrored);
    const auto one = median_interval(said, 0.05), other = median_interval(mirrored, 0.05);
    ASSERT_TRUE(one && other);
    ASSERT_NEAR(one->lo, -other->hi, 1e-12);
    ASSERT_NEAR(one->hi, -other->lo, 1e-12);
  }
}

TEST(Interval, AVoiceThatWeighsALittleLessMakesItNoNarrower) {
  // Of seven voices, worth a little less than seven, the interval is that of six at the least: all of them.
  std::vector<Said> said = said_by_each({1, 2, 3, 4, 5, 6, 7});
  for (Said& lighter : said) {
    lighter.weight = 0.9;
    EXPECT_EQ(*median_interval(said, 0.05), (record::Interval{1, 7})) << lighter.value;
    lighter.weight = 1;
  }
}

// Unequal weights are an approximation, which keeps the promise at each end for weights as caps give them.
TEST(Interval, CoversTheTrueMedianWithUnequalWeights) {
  Random random(5);
  const std::function<double(std::size_t)> weights[] = {
      [](std::size_t voice) { return voice == 0 ? 0.9 : 1.0; },
      [](std::size_t voice) { return voice % 2 == 0 ? 1.0 : 0.5; },
      [](std::size_t voice) { return voice % 3 == 0 ? 1.8 : 1.0; },
      [](std::size_t voice) { return 0.3 + 0.1 * static_cast<double>(voice % 13); }};
  for (const auto& weight_of : weights)
    for (const std::size_t voices : {7u, 8u, 10u, 13u, 26u, 60u}) {
      constexpr int times = 4000;
      int low = 0, high = 0;
      for (int i = 0; i < times; ++i) {
        std::vector<Said> said;
        for (std::size_t voice = 0; voice < voices; ++voice)
          said.push_back({random.normal(), weight_of(voice), static_cast<std::uint32_t>(voice)});
        sort_by_value(said);
        if (order_rank(static_cast<std::size_t>(worth_of(said)), 0.05) == 0) continue;  // Student's
        const auto interval = median_interval(said, 0.05);
        low += interval->lo > 0;
        high += interval->hi < 0;
      }
      const double most = 0.025 * times + 3 * std::sqrt(0.025 * 0.975 * times);
      EXPECT_LE(low, most) << voices << " voices, the first of weight " << weight_of(0);
      EXPECT_LE(high, most) << voices << " voices, the first of weight " << weight_of(0);
    }
}

// Caps whose gains differ, of which one was raced by few of its machines.
TEST(Interval, OfFewVoicesUnderCapsThatDifferKeepsItsPromise) {
  Random random(9);
  constexpr int times = 4000;
  for (const auto& [capped, raced] :
       {std::pair(12, 2), std::pair(13, 2), std::pair(14, 2), std::pair(26, 1)}) {
    // The card's median is in the capped ones' gains: they are more.
    const double share_below = 0.5 * (capped + 10) / capped;
    const double truth = 0.3 * stats::normal_quantile(share_below);
    int low = 0, high = 0;
    for (int i = 0; i < times; ++i) {
      std::vector<Said> said;
      for (int voice = 0; voice < raced; ++voice)
        said.push_back(
            {0.3 * random.normal(), static_cast<double>(capped) / raced, static_cast<std::uint32_t>(voice)});
      for (int voice = 0; voice < 10; ++voice)
        said.push_back({3 + 0.3 * random.normal(), 1, static_cast<std::uint32_t>(100 + voice)});
      sort_by_value(said);
      ASSERT_EQ(order_rank(static_cast<std::size_t>(worth_of(said)), 0.05), 0u);
      const auto interval = median_interval(said, 0.05);
      low += interval->lo > truth;
      high += interval->hi < truth;
    }
    const double most = 0.025 * times + 3 * std::sqrt(0.025 * 0.975 * times);
    EXPECT_LE(low, most) << capped;
    EXPECT_LE(high, most) << capped;
  }
}

}  // namespace
}  // namespace furlong::fleet::internal
