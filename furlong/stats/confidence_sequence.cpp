#include "furlong/stats/confidence_sequence.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>

namespace furlong::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Errors become infinities or NaN, never exceptions.
using NoThrow = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

}  // namespace

void RunningMoments::add(double sample) {
  if (count_ == 0) origin_ = sample;  // keeps the products small against the noise
  const double shifted = sample - origin_;
  if (count_ == 0) first_ = shifted;
  if (count_ > 0) neighbours_ += last_ * shifted;
  last_ = shifted;
  ++count_;
  const double before = sample - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (sample - mean_);
}

double RunningMoments::lag_products() const {
  if (count_ < 2) return 0;
  const auto n = static_cast<double>(count_);
  const double m = mean_ - origin_;
  // Sum over i < n of (x[i] - m)(x[i+1] - m), expanded; sum x = n m.
  return neighbours_ - m * (2 * n * m - first_ - last_) + (n - 1) * m * m;
}

double t_mixture_radius(std::int64_t n, double error, double effect_variance, double degrees) {
  if (n < 2 || !(error > 0) || !(effect_variance > 0) || !(degrees >= 0)) return kInfinity;
  const auto count = static_cast<double>(n);
  // With u = n (mean - null)^2 / (squares + degrees * variance) the evidence against a null is
  //   r^(-1/2) ((1 + u) / (1 + u/r))^((n + degrees)/2),  r = 1 + n g.
  // It stays under 1/error while (1 + u) / (1 + u/r) < a = (r / error^2)^(1/(n + degrees)).
  const double r = 1 + count * effect_variance;
  const double a = std::exp((std::log(r) - 2 * std::log(error)) / (count + degrees));
  if (a >= r) return kInfinity;  // no distance, however large, is evidence enough yet
  return std::sqrt(r * (a - 1) / (r - a) / count);
}

double t_mixture_half_width(const RunningMoments& samples, double error, double effect_variance,
                            VariancePrior prior) {
  const double radius = t_mixture_radius(samples.count(), error, effect_variance, prior.degrees);
  if (!std::isfinite(radius)) return kInfinity;
  return radius * std::sqrt(samples.squares() + prior.degrees * prior.variance);
}

double t_mixture_evidence(const RunningMoments& samples, double null, double effect_variance,
                          VariancePrior prior) {
  if (samples.count() < 2) return 1;
  const auto n = static_cast<double>(samples.count());
  const double r = 1 + n * effect_variance;
  const double away = samples.mean() - null;
  const double spread = samples.squares() + prior.degrees * prior.variance;
  if (spread == 0) return away == 0 ? 1 / std::sqrt(r) : kInfinity;
  const double u = n * away * away / spread;
  return std::exp(0.5 * (n + prior.degrees) * (std::log1p(u) - std::log1p(u / r)) - 0.5 * std::log(r));
}

double best_effect_variance(std::int64_t n, double error, double degrees) {
  // The radius has one minimum in log g; outside the bracket it is infinite or grows like log g.
  const auto radius = [&](double log_g) {
    const double value = t_mixture_radius(n, error, std::exp(log_g), degrees);
    return std::isfinite(value) ? value : 1e9 - log_g;  // slopes towards larger g, where it is finite
  };
  constexpr int kHalfTheDigits = 24;
  return std::exp(boost::math::tools::brent_find_minima(radius, -10.0, 40.0, kHalfTheDigits).first);
}

double single_look_radius(std::int64_t n, double error) {
  if (n < 2 || !(error > 0 && error < 1)) return kInfinity;
  return student_quantile(1 - error / 2, static_cast<double>(n - 1)) / std::sqrt(static_cast<double>(n));
}

double normal_quantile(double p) {
  if (!(p > 0 && p < 1)) return kNaN;
  return boost::math::quantile(boost::math::normal_distribution<double, NoThrow>(0, 1), p);
}

double student_quantile(double p, double degrees_of_freedom) {
  if (!(p > 0 && p < 1) || !(degrees_of_freedom > 0)) return kNaN;
  return boost::math::quantile(boost::math::students_t_distribution<double, NoThrow>(degrees_of_freedom), p);
}

double RadiusTable::at(std::int64_t n) {
  if (n < 0) return kInfinity;
  const auto index = static_cast<std::size_t>(n);
  while (radius_.size() <= index)
    radius_.push_back(
        t_mixture_radius(static_cast<std::int64_t>(radius_.size()), error_, effect_variance_, degrees_));
  return radius_[index];
}

double correlation_inflation(double lag_correlation) {
  const double r = std::clamp(lag_correlation, 0.0, 0.95);
  return std::sqrt((1 + r) / (1 - r));
}

}  // namespace furlong::stats
