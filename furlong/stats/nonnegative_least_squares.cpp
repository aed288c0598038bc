#include "furlong/stats/nonnegative_least_squares.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "furlong/stats/least_squares.h"

namespace furlong::stats {
namespace {

// A column that explains less than this of what is left explains nothing.
constexpr double kExplains = 1e-9;

class ActiveSet {
 public:
  ActiveSet(std::span<const double> design, std::size_t columns, std::span<const double> y)
      : design_(design),
        columns_(columns),
        y_(y),
        norms_(columns),
        x_(columns),
        in_(columns),
        barred_(columns) {
    for (std::size_t row = 0; row < y.size(); ++row)
      for (std::size_t j = 0; j < columns; ++j) norms_[j] += square(design[row * columns + j]);
    for (double& norm : norms_) norm = std::sqrt(norm);
  }

  Result<std::vector<double>> solve(std::size_t most) {
    // Each round ends with a smaller residual or with a column barred, so there are few; the limit is for
    // numbers at the edge of precision.
    for (std::size_t round = 0; round < 10 * columns_ + 10; ++round) {
      const auto column = steepest();
      if (!column || static_cast<std::size_t>(std::count(in_.begin(), in_.end(), 1)) >= most) break;
      in_[*column] = 1;
      if (!settle(*column)) {
        in_[*column] = 0;
        x_[*column] = 0;
        barred_[*column] = 1;
      }
    }
    std::vector<double> result(columns_);
    for (std::size_t j = 0; j < columns_; ++j)
      if (norms_[j] > 0) result[j] = x_[j] / norms_[j];
    return result;
  }

 private:
  static double square(double x) { return x * x; }

  // The column outside that the residual leans on most.
  std::optional<std::size_t> steepest() const {
    std::vector<double> residual(y_.begin(), y_.end());
    double length = 0;
    for (std::size_t row = 0; row < y_.size(); ++row) {
      for (std::size_t j = 0; j < columns_; ++j)
        if (norms_[j] > 0) residual[row] -= design_[row * columns_ + j] / norms_[j] * x_[j];
      length += square(residual[row]);
    }
    double best = kExplains * std::sqrt(length);
    std::optional<std::size_t> found;
    for (std::size_t j = 0; j < columns_; ++j) {
      if (in_[j] != 0 || barred_[j] != 0 || !(norms_[j] > 0)) continue;
      double lean = 0;
      for (std::size_t row = 0; row < y_.size(); ++row)
        lean += design_[row * columns_ + j] / norms_[j] * residual[row];
      if (lean > best) {
        best = lean;
        found = j;
      }
    }
    return found;
  }

  // Unconstrained over those that are in; nothing when one depends on the others.
  std::optional<std::vector<double>> unconstrained() const {
    std::vector<std::size_t> in;
    for (std::size_t j = 0; j < columns_; ++j)
      if (in_[j] != 0) in.push_back(j);
    std::vector<double> part;
    for (std::size_t row = 0; row < y_.size(); ++row)
      for (const std::size_t j : in) part.push_back(design_[row * columns_ + j] / norms_[j]);
    std::vector<double> z(columns_);
    if (in.empty()) return z;
    const auto fit = least_squares(part, in.size(), y_);
    if (!fit) return std::nullopt;
    for (std::size_t i = 0; i < in.size(); ++i) z[in[i]] = fit->coefficients[i];
    return z;
  }

  // Goes to the unconstrained minimum, letting out each column that would go below 0 on the way. False: the
  // new column cannot come in.
  bool settle(std::size_t fresh) {
    for (bool first = true;; first = false) {
      const auto z = unconstrained();
      if (!z || (first && (*z)[fresh] <= 0)) return false;
      double step = 1;
      std::optional<std::size_t> first_out;
      for (std::size_t j = 0; j < columns_; ++j) {
        if (in_[j] == 0 || (*z)[j] > 0) continue;
        const double until = x_[j] / (x_[j] - (*z)[j]);
        if (first_out && until >= step) continue;
        step = until;
        first_out = j;
      }
      for (std::size_t j = 0; j < columns_; ++j)
        if (in_[j] != 0) x_[j] = std::max(0.0, x_[j] + step * ((*z)[j] - x_[j]));
      if (!first_out) return true;
      in_[*first_out] = 0;
      x_[*first_out] = 0;
    }
  }

  const std::span<const double> design_;
  const std::size_t columns_;
  const std::span<const double> y_;
  std::vector<double> norms_, x_;
  std::vector<char> in_, barred_;
};

}  // namespace

Result<std::vector<double>> nonnegative_least_squares(std::span<const double> design, std::size_t columns,
                                                      std::span<const double> y, std::size_t most) {
  if (columns == 0 || y.empty() || design.size() != y.size() * columns)
    return fail(Code::invalid, "least squares: {} values do not make {} rows of {} columns", design.size(),
                y.size(), columns);
  const auto bad = [](double value) { return !std::isfinite(value); };
  if (std::any_of(design.begin(), design.end(), bad) || std::any_of(y.begin(), y.end(), bad))
    return fail(Code::invalid, "least squares: a value is not finite");
  return ActiveSet(design, columns, y).solve(most);
}

}  // namespace furlong::stats
