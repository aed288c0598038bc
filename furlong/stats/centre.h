#pragma once
// Centres, scales and quantiles that a few wild samples cannot move. Every function is pure and thread
// safe; none changes its input unless its name says in_place. Formulas and their sources stand at each.

#include <span>

namespace furlong::stats {

/// Middle value, or the mean of the two middle ones. NaN when empty or when a value is NaN. O(n).
double median(std::span<const double> values);
/// As median(), but reorders `values` instead of copying them.
double median_in_place(std::span<double> values);

/// Median absolute deviation from the median, times 1.4826 so that it estimates the standard deviation of
/// Gaussian values (Hampel 1974). Half of the values may be wild. NaN when empty.
double mad_scale(std::span<const double> values);

/// Quantile p in [0, 1] by linear interpolation between order statistics: type 7 of Hyndman and Fan (1996).
/// NaN when empty or when p is outside [0, 1].
double quantile(std::span<const double> values, double p);

/// Mean. NaN when empty.
double mean(std::span<const double> values);
/// Sample standard deviation (n - 1). NaN for fewer than two values.
double deviation(std::span<const double> values);

/// Mean of what is left when the floor(fraction * n) smallest and as many largest values are dropped
/// (Tukey's trimmed mean). `fraction` is at each end and is clamped to [0, 0.5); the median is what is left
/// of the limit. NaN when empty.
double trimmed_centre(std::span<const double> values, double fraction);

/// `value` moved into [centre - width, centre + width]: one step of Huber's (1964) estimator.
constexpr double clip(double value, double centre, double width) {
  return value < centre - width ? centre - width : value > centre + width ? centre + width : value;
}

/// Mean of min(z^2, k^2) for a standard normal z: the factor by which clipping at k standard deviations
/// lowers a variance (Huber's proposal 2).
double clipped_variance(double k);

}  // namespace furlong::stats
