#pragma once
// Least squares whose coefficients may not be negative: models that must grow with what they count. Pure,
// thread safe.

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::stats {

/// The x >= 0 that minimises |A x - y|, by the active set method (Lawson and Hanson, Solving Least Squares
/// Problems, 1974, chapter 23), on columns scaled to one length. `design` is A, row-major, rows * columns
/// values; `y` has one value a row. At most `most` coefficients are above 0: columns come in by how much they
/// still explain, so few rows are not explained by as many columns. One that depends on those that are in
/// stays out. `invalid`: sizes that do not fit, a value that is not finite.
Result<std::vector<double>> nonnegative_least_squares(
    std::span<const double> design, std::size_t columns, std::span<const double> y,
    std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace furlong::stats
