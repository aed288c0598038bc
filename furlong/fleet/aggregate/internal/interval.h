#pragma once
// Medians over voices and their intervals. Formulas and sources: docs/fleet-aggregation.md, "Intervals".
// Pure functions, thread safe. Internal to furlong/fleet/aggregate.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::fleet::internal {

inline constexpr double interval_error = 0.05;

/// What one voice says, and how much of it this is: a voice under two power caps says two things, and its
/// weights add up to at most what one voice has.
struct Said {
  double value = 0;
  double weight = 1;
  std::uint32_t voice = 0;
};

/// Orders `said` by value (then voice, so that sums have one order).
void sort_by_value(std::vector<Said>& said);
/// Of values in order: the one at which the weights before it and its own reach half; the mean of two where
/// they reach exactly half. With equal weights the plain median. NaN when empty or without weight.
double weighted_median(std::span<const Said> ordered);

/// The largest k with 2 P(Binomial(n, 1/2) < k) <= error, so that the k-th smallest and the k-th largest of n
/// values hold the median between them with at least 1 - error; 0: not even the outermost do.
std::size_t order_rank(std::size_t n, double error);

/// How many equal voices the weights are worth: (sum w)^2 / sum w^2 (Kish 1965), w by voice.
double worth_of(std::span<const Said> said);

/// Of values in order; nullopt for fewer than two voices.
std::optional<record::Interval> median_interval(std::span<const Said> ordered, double error);

/// Median, interval and number of voices; samples and races are the caller's. Reorders `said`.
Estimate estimate_of(std::vector<Said>& said, double error = interval_error);

}  // namespace furlong::fleet::internal
