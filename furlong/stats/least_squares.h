#pragma once
// Ordinary and ridge least squares, and the main effects of knobs on log time. Pure, thread safe.

#include <cstddef>
#include <span>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::stats {

struct Fit {
  std::vector<double> coefficients;
  /// Of each coefficient, from the residual deviation and (A'A + ridge)^-1: the usual formula when ridge is
  /// 0, an approximation that ignores the shrinkage otherwise. NaN when no degree of freedom is left.
  std::vector<double> standard_errors;
  std::vector<double> residuals;  ///< y - A x, one a row
  double residual_squares = 0;    ///< sum of their squares
  double residual_deviation = 0;  ///< sqrt(residual_squares / degrees_of_freedom); NaN without any
  double degrees_of_freedom = 0;  ///< rows - columns, never below 0 (shrinkage would leave more)
  double explained = 0;           ///< R^2 about the mean of y, in [0, 1]; 0 when y is constant
};

/// Minimises |A x - y|^2 + ridge * |x_penalised|^2 by Householder QR (Golub and Van Loan, Matrix
/// Computations, 5.3; ridge as rows of sqrt(ridge) appended: Hoerl and Kennard 1970). `design` is A,
/// row-major, rows * columns values; `y` has one value a row; the first `unpenalised` columns (the intercept)
/// are not shrunk. `invalid`: sizes that do not fit, a value that is not finite, or a column that depends on
/// those before it (named by its index), which any ridge > 0 on it cures.
Result<Fit> least_squares(std::span<const double> design, std::size_t columns, std::span<const double> y,
                          double ridge = 0, std::size_t unpenalised = 0);

/// What one value of one knob does to log time compared with the knob's default, other knobs equal.
struct MainEffect {
  std::size_t knob = 0;
  int value = 0;        ///< index of the value
  double log_time = 0;  ///< difference of log time to the default value: below 0 is faster
  double standard_error = 0;
  int samples = 0;  ///< points that have this value
};

struct MainEffects {
  std::vector<MainEffect> effects;  ///< by knob, then value; values that no point has are left out
  double base_log_time = 0;         ///< fitted log time of the point of all defaults
  double residual_deviation = 0;    ///< in log time: what interactions and noise leave unexplained
  double explained = 0;             ///< R^2
};

/// Fits log_time[i] = base + sum over knobs of effect(knob, points[i][knob]); points hold value indices, one
/// a knob; `defaults` the default value's index of each knob. A little ridge shares the effect among knobs
/// that were only ever changed together. `invalid` when sizes do not fit or there are no points.
Result<MainEffects> main_effects(std::span<const std::vector<int>> points, std::span<const int> defaults,
                                 std::span<const double> log_time, double ridge = 1e-6);

}  // namespace furlong::stats
