#include "furlong/fleet/aggregate/internal/own_interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "furlong/stats/centre.h"
#include "furlong/stats/confidence_sequence.h"

namespace furlong::fleet::internal {
namespace {

bool holds(const record::Interval& interval, double value) {
  return interval.lo <= value && value <= interval.hi;
}

/// From the lowest to the highest of what the machines say each for itself. Only where all do: a hull of
/// those that have raced most would be the word of one machine in the name of all.
std::optional<record::Interval> hull(std::span<const Own> own, double error) {
  std::optional<record::Interval> whole;
  for (const Own& each : own) {
    const auto one = own_interval(each, error);
    if (!one) return std::nullopt;
    if (!whole) whole = one;
    whole = record::Interval{std::min(whole->lo, one->lo), std::max(whole->hi, one->hi)};
  }
  return whole;
}

/// Means and medians may differ. The median alone is no bound: it takes its margin along.
record::Interval around(record::Interval interval, double median) {
  const double half = (interval.hi - interval.lo) / 2;
  if (median > interval.hi) interval.hi = median + half;
  if (median < interval.lo) interval.lo = median - half;
  return interval;
}

/// Student's, with the floor: two voices that agree to the last digit are chance.
std::optional<record::Interval> together(std::span<const Said> ordered, double error) {
  auto interval = median_interval(ordered, error);
  if (!interval) return std::nullopt;
  const auto voices = static_cast<double>(ordered.size());
  const double half =
      stats::student_quantile(1 - error / 2, voices - 1) * 100 * scatter_floor / std::sqrt(voices);
  const double median = weighted_median(ordered);
  return record::Interval{std::min(interval->lo, median - half), std::max(interval->hi, median + half)};
}

}  // namespace

double variance_of_mean(std::span<const double> logs) {
  const double deviation = stats::deviation(logs);  // NaN for one value, and stays so
  return std::isnan(deviation)
             ? deviation
             : std::pow(std::max(deviation, scatter_floor), 2) / static_cast<double>(logs.size());
}

std::optional<record::Interval> own_interval(const Own& own, double error) {
  if (!(own.degrees >= 1) || !std::isfinite(own.log_variance)) return std::nullopt;
  const double half = stats::student_quantile(1 - error / 2, own.degrees) * std::sqrt(own.log_variance);
  return record::Interval{100 * std::expm1(own.log_mean - half), 100 * std::expm1(own.log_mean + half)};
}

std::optional<record::Interval> voices_interval(std::span<const Said> ordered, std::span<const Own> own,
                                                double error) {
  if (ordered.empty()) return std::nullopt;
  const double median = weighted_median(ordered);
  if (ordered.size() == 1) {
    const auto each = hull(own, error);
    return each ? std::optional(around(*each, median)) : std::nullopt;
  }
  if (order_rank(ordered.size(), error) > 0) return median_interval(ordered, error);
  const auto each = hull(own, error / 2);
  if (!each) return together(ordered, error);
  const auto all = together(ordered, error / 2);
  if (!all) return around(*each, median);
  const record::Interval both{std::max(all->lo, each->lo), std::min(all->hi, each->hi)};
  return holds(both, median) ? both : *all;
}

}  // namespace furlong::fleet::internal
