#include "furlong/stats/centre.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace furlong::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// 1 / Phi^-1(3/4): the median of |z| for a standard normal z is 0.67449.
constexpr double kMadToDeviation = 1.482602218505602;

// NaN breaks the ordering that nth_element and sort rely on.
bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
}

}  // namespace

double median_in_place(std::span<double> values) {
  if (values.empty() || has_nan(values)) return kNaN;
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

double median(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

double mad_scale(std::span<const double> values) {
  std::vector<double> away(values.begin(), values.end());
  const double centre = median_in_place(away);
  if (std::isnan(centre)) return kNaN;
  for (double& v : away) v = std::abs(v - centre);
  return kMadToDeviation * median_in_place(away);
}

double quantile(std::span<const double> values, double p) {
  if (values.empty() || !(p >= 0 && p <= 1) || has_nan(values)) return kNaN;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double share = at - static_cast<double>(below);
  if (share == 0) return sorted[below];  // exact, and no 0 * infinity
  return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

double mean(std::span<const double> values) {
  if (values.empty()) return kNaN;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(std::span<const double> values) {
  if (values.size() < 2) return kNaN;
  const double centre = mean(values);
  double squares = 0;
  for (double v : values) squares += (v - centre) * (v - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double trimmed_centre(std::span<const double> values, double fraction) {
  if (values.empty() || has_nan(values) || std::isnan(fraction)) return kNaN;
  fraction = std::clamp(fraction, 0.0, 0.5);
  auto drop = static_cast<std::size_t>(fraction * static_cast<double>(values.size()));
  drop = std::min(drop, (values.size() - 1) / 2);  // at least one value (two when even) is left
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return mean(std::span(sorted).subspan(drop, sorted.size() - 2 * drop));
}

double clipped_variance(double k) {
  // Integration by parts of z^2 phi(z) over [-k, k], plus k^2 on both tails.
  const double inside = std::erf(k / std::sqrt(2.0));
  const double density = std::exp(-0.5 * k * k) / std::sqrt(2 * M_PI);
  return inside - 2 * k * density + k * k * (1 - inside);
}

}  // namespace furlong::stats
