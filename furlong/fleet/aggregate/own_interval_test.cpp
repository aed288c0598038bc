#include "furlong/fleet/aggregate/internal/own_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace furlong::fleet::internal {
namespace {

Own own(double pct, double scatter_pct, int races) {
  return {.log_mean = std::log1p(pct / 100),
          .log_variance = std::pow(scatter_pct / 100, 2) / races,
          .degrees = races - 1.0};
}

std::vector<Said> said(const std::vector<double>& values) {
  std::vector<Said> all;
  for (std::size_t i = 0; i < values.size(); ++i)
    all.push_back({values[i], 1, static_cast<std::uint32_t>(i)});
  sort_by_value(all);
  return all;
}

TEST(VoicesInterval, OneVoiceHasItsOwn) {
  const auto interval = voices_interval(said({-6}), std::vector{own(-6, 0.5, 20)}, 0.05);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->lo, -6.22, 0.02);
  EXPECT_NEAR(interval->hi, -5.78, 0.02);
  EXPECT_FALSE(voices_interval(said({-6}), std::vector{Own{}}, 0.05)) << "one race";
}

/// The median is -1.2, the means say -6 and are sure of it: the two contradict each other.
TEST(VoicesInterval, TheEstimateIsNoEndOfIt) {
  const auto one = voices_interval(said({-1.2}), std::vector{own(-6, 1, 20)}, 0.05);
  ASSERT_TRUE(one);
  EXPECT_LT(one->lo, -6);
  EXPECT_GT(one->hi, -1);
  const std::vector<Own> sure(3, own(-6, 0.5, 20));
  const auto three = voices_interval(said({-1.1, -1.2, -6}), sure, 0.05);
  ASSERT_TRUE(three);
  EXPECT_GT(three->hi, -1);
}

TEST(VoicesInterval, TheHullCountsOnlyWhereEveryMachineHasOne) {
  const std::vector<Own> all(3, own(-6, 0.5, 20));
  const auto each = voices_interval(said({-4, -6, -8}), all, 0.05);
  ASSERT_TRUE(each);
  EXPECT_LT(each->hi, -5);
  const auto some = voices_interval(said({-4, -6, -8}), std::vector{all[0], all[1], Own{}}, 0.05);
  ASSERT_TRUE(some);
  EXPECT_GT(some->hi, -2) << "Student's over three";
}

TEST(VoicesInterval, ScatterHasAFloor) {
  EXPECT_GT(voices_interval(said({-6, -6}), std::vector{Own{}, Own{}}, 0.05)->hi, -5.5);
  EXPECT_DOUBLE_EQ(variance_of_mean(std::vector<double>(4, 2.0)), 1e-6 / 4);
  EXPECT_TRUE(std::isnan(variance_of_mean(std::vector<double>(1, 2.0))));
}

}  // namespace
}  // namespace furlong::fleet::internal
