#include "furlong/stats/nonnegative_least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "furlong/base/random.h"

namespace furlong::stats {
namespace {

TEST(NonnegativeLeastSquares, IsThePlainOneWhereThatIsNotNegative) {
  const std::vector<double> design{1, 0, 1, 1, 1, 2, 1, 3}, y{1, 3, 5, 7};
  const auto x = nonnegative_least_squares(design, 2, y);
  ASSERT_TRUE(x) << x.error().text();
  EXPECT_NEAR((*x)[0], 1, 1e-9);
  EXPECT_NEAR((*x)[1], 2, 1e-9);
}

TEST(NonnegativeLeastSquares, HoldsAtZeroWhatWouldBeNegative) {
  // The line through these falls below 0 at x = 0; without a base the slope is sum(xy) / sum(xx).
  const std::vector<double> design{1, 1, 1, 2, 1, 3}, y{0, 2, 4};
  const auto x = nonnegative_least_squares(design, 2, y);
  ASSERT_TRUE(x);
  EXPECT_EQ((*x)[0], 0);
  EXPECT_NEAR((*x)[1], (0 + 4 + 12) / 14.0, 1e-9);
}

// At the minimum no column that is out would lessen the residual, and none that is in either (Kuhn and
// Tucker).
TEST(NonnegativeLeastSquares, FindsTheMinimumOfRandomProblems) {
  Random random(3, "nonnegative least squares");
  for (int problem = 0; problem < 200; ++problem) {
    const std::size_t rows = 12, columns = 5;
    std::vector<double> design, y;
    for (std::size_t i = 0; i < rows * columns; ++i)
      design.push_back(random.normal() * std::pow(1000.0, static_cast<double>(i % columns)));
    for (std::size_t i = 0; i < rows; ++i) y.push_back(random.normal());
    const auto x = nonnegative_least_squares(design, columns, y);
    ASSERT_TRUE(x);
    for (std::size_t j = 0; j < columns; ++j) {
      double gradient = 0, length = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        double residual = y[i];
        for (std::size_t k = 0; k < columns; ++k) residual -= design[i * columns + k] * (*x)[k];
        gradient += design[i * columns + j] * residual;
        length += design[i * columns + j] * design[i * columns + j];
      }
      gradient /= std::sqrt(length);
      EXPECT_GE((*x)[j], 0);
      EXPECT_LT(gradient, 1e-6) << problem << " " << j;
      EXPECT_TRUE((*x)[j] == 0 || gradient > -1e-6) << problem << " " << j;
    }
  }
}

TEST(NonnegativeLeastSquares, DependentAndEmptyColumnsAndTheMostAreMinded) {
  const std::vector<double> design{1, 2, 0, 5, 2, 4, 0, 1, 3, 6, 0, 2}, y{8, 7, 11};  // y = col 0 * 3 + col 3
  const auto x = nonnegative_least_squares(design, 4, y);
  ASSERT_TRUE(x);
  EXPECT_NEAR((*x)[0] + 2 * (*x)[1], 3, 1e-9);
  EXPECT_EQ((*x)[2], 0);
  EXPECT_NEAR((*x)[3], 1, 1e-9);
  const auto one = nonnegative_least_squares(design, 4, y, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(((*one)[0] > 0) + ((*one)[1] > 0) + ((*one)[2] > 0) + ((*one)[3] > 0), 1);
}

TEST(NonnegativeLeastSquares, NamesWhatIsWrong) {
  const std::vector<double> design{1, 2}, y{1}, bad{std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(nonnegative_least_squares(design, 3, y).error().code(), Code::invalid);
  EXPECT_EQ(nonnegative_least_squares(design, 0, y).error().code(), Code::invalid);
  EXPECT_EQ(nonnegative_least_squares(design, 2, bad).error().code(), Code::invalid);
}

}  // namespace
}  // namespace furlong::stats
