#pragma once
// Intervals for a mean that hold at every sample at once, so that a race may look after every heat and
// stop when it likes. The derivation: docs/race-statistics.md. All functions are pure and thread safe;
// the classes are plain values.

#include <cstdint>
#include <vector>

namespace furlong::stats {

/// Running mean, variance and lag-1 autocovariance in O(1) a sample (Welford 1962). The samples are taken
/// in time order.
class RunningMoments {
 public:
  void add(double sample);
  std::int64_t count() const { return count_; }
  /// 0 before the first sample.
  double mean() const { return mean_; }
  /// Sum of squared distances from the mean.
  double squares() const { return squares_; }
  /// Sample variance (n - 1); 0 for fewer than two samples.
  double variance() const { return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1); }
  /// Sum over successive samples of (x[i] - mean) * (x[i+1] - mean).
  double lag_products() const;

 private:
  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
  double first_ = 0, last_ = 0;         // relative to origin_
  double origin_ = 0, neighbours_ = 0;  // sum of products of successive samples, relative to origin_
};

/// What is known beforehand of a sample's variance: a scaled inverse chi-squared prior, worth `degrees`
/// samples whose variance is `variance`. Degrees 0: nothing is known (the right Haar prior).
struct VariancePrior {
  double degrees = 0;
  double variance = 0;
};

/// The t-mixture interval for the mean of n Gaussian samples of unknown mean and variance is
/// mean +- radius * sqrt(squares + degrees * variance), with `squares` the sum of squared distances from the
/// sample mean and the last two from the prior; this returns `radius` (infinity while no finite bound
/// exists). The chance that the true mean ever leaves the interval, over all n, is at most `error`.
///
/// It inverts the Bayes factor of the t-test whose effect size (mean - null) / sigma has a Gaussian prior of
/// variance `effect_variance` and whose sigma has the right Haar prior (degrees 0): a nonnegative martingale
/// under the null for every sigma, so Ville's (1939) inequality bounds its maximum. Lai (1976); Wang and
/// Ramdas (2023), theorem 4.9. With degrees > 0 the guarantee is on average over the prior (Smyth 2004
/// moderates t-tests so). Any effect_variance > 0 is valid; it only says at which n the interval is
/// narrowest.
double t_mixture_radius(std::int64_t n, double error, double effect_variance, double degrees = 0);

/// Half-width of that interval for these samples.
double t_mixture_half_width(const RunningMoments& samples, double error, double effect_variance,
                            VariancePrior prior = {});

/// That Bayes factor itself for n >= 2 samples against the null mean `null`: evidence (an e-value). 1 for
/// fewer than two samples; infinity when all samples are equal and not `null` and nothing is known
/// beforehand.
double t_mixture_evidence(const RunningMoments& samples, double null, double effect_variance,
                          VariancePrior prior = {});

/// The effect variance that makes the radius smallest at `n` samples (n >= 3), found by minimising it.
double best_effect_variance(std::int64_t n, double error, double degrees = 0);

/// The ordinary two-sided t interval, for one look only: t quantile / sqrt(n); infinity for n < 2.
double single_look_radius(std::int64_t n, double error);

/// Quantiles of the standard normal and of Student's t; p in (0, 1), else NaN.
double normal_quantile(double p);
double student_quantile(double p, double degrees_of_freedom);

/// t_mixture_radius() for fixed parameters, remembered per n: a race asks for the same few hundred values
/// again and again. Not thread safe (it grows on use).
class RadiusTable {
 public:
  RadiusTable(double error, double effect_variance, double degrees = 0)
      : error_(error), effect_variance_(effect_variance), degrees_(degrees) {}
  double at(std::int64_t n);

 private:
  double error_, effect_variance_, degrees_;
  std::vector<double> radius_;
};

/// The factor by which correlation between successive samples widens the standard error of their mean:
/// sqrt((1 + r) / (1 - r)) for a lag-1 correlation r (first-order autoregression), never below 1. `r` is
/// clamped to 0.95.
double correlation_inflation(double lag_correlation);

}  // namespace furlong::stats
