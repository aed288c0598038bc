#include "furlong/audit/internal/pool.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "furlong/stats/centre.h"
#include "furlong/stats/confidence_sequence.h"

namespace furlong::audit::internal {
namespace {

/// Intervals of no width (identical machine code) would take all the weight.
constexpr double kLeastHalf = 1e-5;
/// One test in so many calls races of one truth different; they then get the wider interval.
constexpr double kAgreementError = 0.05;

double half_of(const Sample& sample) {
  return std::max({sample.value - sample.low, sample.high - sample.value, kLeastHalf});
}

/// Quantile of chi-squared by Wilson and Hilferty (1931): within 1% from 1 degree on at this level.
double chi_squared_quantile(double p, double degrees) {
  const double part = 2 / (9 * degrees);
  const double root = 1 - part + stats::normal_quantile(p) * std::sqrt(part);
  return degrees * root * root * root;
}

/// Cochran's Q: the squared distances from the weighted mean in standard errors. A record's interval is at
/// least the normal one of its level, so its half-width over that quantile is at least a standard error.
bool agree(std::span<const Sample> races, double mean) {
  const double quantile = stats::normal_quantile(1 - kRecordError / 2);
  double q = 0;
  for (const Sample& race : races) {
    const double distance = quantile * (race.value - mean) / half_of(race);
    q += distance * distance;
  }
  return q <= chi_squared_quantile(1 - kAgreementError, static_cast<double>(races.size() - 1));
}

/// How many races may lie outside on each side: the largest r with 2 P(Binomial(n, 1/2) < r) <= error.
std::size_t outside(std::size_t n, double error) {
  const auto races = static_cast<double>(n);
  if (n > 500)  // by the normal approximation, rounded to the wide side
    return static_cast<std::size_t>(races / 2 - stats::normal_quantile(1 - error / 2) * std::sqrt(races) / 2 -
                                    1);
  double term = std::exp2(-races);  // P(X = 0)
  double below = term;
  std::size_t r = 0;
  while (2 * below <= error && r + 1 < n / 2) {
    ++r;
    term *= static_cast<double>(n - r + 1) / static_cast<double>(r);
    below += term;
  }
  return r;
}

Sample of_disagreeing(std::span<const Sample> races) {
  std::vector<double> values, lows, highs;
  for (const Sample& race : races) {
    values.push_back(race.value);
    lows.push_back(race.low);
    highs.push_back(race.high);
  }
  std::ranges::sort(lows);
  std::ranges::sort(highs);
  const std::size_t left_out = outside(races.size(), kRecordError);
  const std::size_t first = left_out > 0 ? left_out - 1 : 0;  // the r-th from each end bounds the median
  return {stats::median(values), lows[first], highs[highs.size() - 1 - first]};
}

}  // namespace

Sample difference(const Sample& a, const Sample& b) {
  return {b.value - a.value, b.low - a.high, b.high - a.low};
}

Sample of_race(std::span<const Sample> pairs) {
  std::vector<double> values, lows, highs;
  for (const Sample& pair : pairs) {
    values.push_back(pair.value);
    lows.push_back(pair.low);
    highs.push_back(pair.high);
  }
  return {stats::median(values), stats::median(lows), stats::median(highs)};
}

Pooled pool(std::span<const Sample> races) {
  if (races.size() == 1) return {races[0], false};
  double weights = 0, sum = 0;
  for (const Sample& race : races) {
    const double weight = 1 / (half_of(race) * half_of(race));
    weights += weight;
    sum += weight * race.value;
  }
  const double mean = sum / weights;
  if (!agree(races, mean)) return {of_disagreeing(races), true};
  const double half = 1 / std::sqrt(weights);
  return {{mean, mean - half, mean + half}, false};
}

Spread spread_of(std::span<const PairSample> pairs) {
  Spread spread;
  if (pairs.empty()) return spread;
  std::vector<double> values;
  std::map<int, std::vector<Sample>> by_race;
  for (const PairSample& pair : pairs) {
    values.push_back(pair.sample.value);
    by_race[pair.race].push_back(pair.sample);
  }
  std::vector<Sample> races;
  for (const auto& [race, samples] : by_race) races.push_back(of_race(samples));
  const Pooled pooled = pool(races);
  spread.races = static_cast<int>(races.size());
  spread.pairs = static_cast<int>(pairs.size());
  spread.median = stats::median(values);
  spread.min = std::ranges::min(values);
  spread.max = std::ranges::max(values);
  spread.estimate = pooled.sample.value;
  spread.low = pooled.sample.low;
  spread.high = pooled.sample.high;
  spread.disagree = pooled.disagree;
  return spread;
}

State state_of(const Spread& spread, double threshold) {
  if (spread.races == 0) return State::none;
  if (spread.low > threshold) return State::wins;
  if (spread.high < -threshold) return State::loses;
  const bool worse_refuted = spread.low > -threshold;
  const bool better_refuted = spread.high < threshold;
  if (worse_refuted && better_refuted) return State::ties;
  if (worse_refuted) return State::not_worse;
  return better_refuted ? State::not_better : State::open;
}

}  // namespace furlong::audit::internal
