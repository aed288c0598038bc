#include "furlong/stats/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "furlong/base/random.h"

namespace furlong::stats {
namespace {

TEST(LeastSquares, ExactLine) {
  const std::vector<double> design{1, 0, 1, 1, 1, 2, 1, 3}, y{1, 3, 5, 7};
  const auto fit = least_squares(design, 2, y);
  ASSERT_TRUE(fit) << fit.error().text();
  EXPECT_NEAR(fit->coefficients[0], 1, 1e-12);
  EXPECT_NEAR(fit->coefficients[1], 2, 1e-12);
  EXPECT_NEAR(fit->residual_squares, 0, 1e-20);
  EXPECT_NEAR(fit->explained, 1, 1e-12);
  EXPECT_EQ(fit->degrees_of_freedom, 2);
}

TEST(LeastSquares, TextbookErrors) {
  // y on x for (0,1) (1,2) (2,2) (3,4): slope 0.9, intercept 0.9, residual squares 0.7.
  const std::vector<double> design{1, 0, 1, 1, 1, 2, 1, 3}, y{1, 2, 2, 4};
  const auto fit = least_squares(design, 2, y);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->coefficients[0], 0.9, 1e-12);
  EXPECT_NEAR(fit->coefficients[1], 0.9, 1e-12);
  EXPECT_NEAR(fit->residual_squares, 0.7, 1e-12);
  EXPECT_NEAR(fit->residual_deviation, std::sqrt(0.35), 1e-12);
  EXPECT_NEAR(fit->standard_errors[1], std::sqrt(0.35 / 5), 1e-12);
  EXPECT_NEAR(fit->standard_errors[0], std::sqrt(0.35 * (0.25 + 2.25 / 5)), 1e-12);
}

// The normal equations (A'A + ridge) x = A'y hold at the solution: an independent check of the QR.
TEST(LeastSquares, SatisfiesTheNormalEquations) {
  Random random(8);
  for (int round = 0; round < 60; ++round) {
    const std::size_t columns = 1 + random.below(6), rows = columns + 1 + random.below(20);
    const double ridge = round % 2 ? 0.3 : 0;
    std::vector<double> design(rows * columns), y(rows);
    for (double& v : design) v = random.normal();
    for (double& v : y) v = random.normal();
    const auto fit = least_squares(design, columns, y, ridge, 1);
    ASSERT_TRUE(fit) << fit.error().text();
    for (std::size_t j = 0; j < columns; ++j) {
      double gradient = j >= 1 ? -ridge * fit->coefficients[j] : 0;
      for (std::size_t i = 0; i < rows; ++i) gradient += design[i * columns + j] * fit->residuals[i];
      EXPECT_NEAR(gradient, 0, 1e-9);
    }
  }
}

TEST(LeastSquares, StandardErrorsCoverTheTruth) {
  Random random(9);
  int inside = 0;
  constexpr int kFits = 600;
  for (int f = 0; f < kFits; ++f) {
    std::vector<double> design, y;
    for (int i = 0; i < 30; ++i) {
      const double x = random.normal();
      design.insert(design.end(), {1, x});
      y.push_back(2 - x + 0.5 * random.normal());
    }
    const auto fit = least_squares(design, 2, y);
    ASSERT_TRUE(fit);
    inside += std::abs(fit->coefficients[1] + 1) < 2.048 * fit->standard_errors[1];  // 95%, 28 degrees
  }
  EXPECT_NEAR(inside / static_cast<double>(kFits), 0.95, 0.03);
}

TEST(LeastSquares, NamesWhatIsWrong) {
  const auto message = [](const Result<Fit>& fit) {
    EXPECT_FALSE(fit);
    return fit ? std::string() : fit.error().text();
  };
  EXPECT_NE(
      message(least_squares(std::vector<double>{1, 2, 3}, 2, std::vector<double>{1, 2})).find("2 rows of 2"),
      std::string::npos);
  EXPECT_NE(message(least_squares(std::vector<double>{1, 2, 1, 2, 1, 2}, 2, std::vector<double>{1, 2, 3}))
                .find("column 1 depends"),
            std::string::npos);
  EXPECT_NE(
      message(least_squares(std::vector<double>{1, NAN}, 2, std::vector<double>{1})).find("row 0 column 1"),
      std::string::npos);
  EXPECT_NE(message(least_squares(std::vector<double>{1}, 1, std::vector<double>{INFINITY})).find("row 0"),
            std::string::npos);
  EXPECT_NE(message(least_squares(std::vector<double>{1, 2}, 2, std::vector<double>{1})).find("1 rows"),
            std::string::npos);
  EXPECT_NE(message(least_squares(std::vector<double>{1}, 1, std::vector<double>{1}, -1)).find("ridge"),
            std::string::npos);
}

TEST(MainEffects, FindsWhatEachKnobDoes) {
  // Two knobs of 3 and 2 values, additive in log time, every point once with a little noise.
  Random random(10);
  const std::vector<std::vector<double>> truth{{0, -0.10, 0.05}, {0.2, 0}};
  std::vector<std::vector<int>> points;
  std::vector<double> log_time;
  for (int repeat = 0; repeat < 5; ++repeat)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 2; ++b) {
        points.push_back({a, b});
        log_time.push_back(1.5 + truth[0][static_cast<std::size_t>(a)] +
                           truth[1][static_cast<std::size_t>(b)] + 0.002 * random.normal());
      }
  const auto found = main_effects(points, std::vector<int>{0, 1}, log_time);
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->effects.size(), 3u);
  for (const MainEffect& e : found->effects) {
    EXPECT_NEAR(e.log_time, truth[e.knob][static_cast<std::size_t>(e.value)], 0.006);
    EXPECT_GT(e.standard_error, 0);
    EXPECT_EQ(e.samples, e.knob == 0 ? 10 : 15);
  }
  EXPECT_NEAR(found->base_log_time, 1.5, 0.005);
  EXPECT_NEAR(found->residual_deviation, 0.002, 0.001);
  EXPECT_GT(found->explained, 0.99);
}

TEST(MainEffects, KnobsThatChangedTogetherShareTheEffect) {
  const std::vector<std::vector<int>> points{{0, 0}, {1, 1}, {0, 0}, {1, 1}};
  const auto found = main_effects(points, std::vector<int>{0, 0}, std::vector<double>{0, 0.4, 0, 0.4});
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_NEAR(found->effects[0].log_time, 0.2, 1e-4);
  EXPECT_NEAR(found->effects[1].log_time, 0.2, 1e-4);
}

TEST(MainEffects, RefusesWhatDoesNotFit) {
  const std::vector<std::vector<int>> points{{0, 0}, {1}};
  const auto found = main_effects(points, std::vector<int>{0, 0}, std::vector<double>{1, 2});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text().find("point 1"), std::string::npos);
  EXPECT_FALSE(main_effects({}, {}, {}));
}

}  // namespace
}  // namespace furlong::stats
