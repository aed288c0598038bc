#include "furlong/fleet/aggregate/internal/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "furlong/stats/confidence_sequence.h"

namespace furlong::fleet::internal {
namespace {

/// Sums of weights that differ by less are equal: they are sums of fractions.
constexpr double slack = 1e-9;
/// Up to here the binomial is added up; its first term, 2^-n, is still a number.
constexpr std::size_t most_exact = 1000;

double weight_of(std::span<const Said> said) {
  double sum = 0;
  for (const Said& each : said) sum += each.weight;
  return sum;
}

std::size_t exact_rank(std::size_t n, double error) {
  double term = std::ldexp(1.0, -static_cast<int>(n));  // P(X = k)
  double below = term;                                  // P(X < k + 1)
  std::size_t k = 0;
  while (2 * below <= error && 2 * (k + 1) <= n) {
    ++k;
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += term;
  }
  return k;
}

/// The first value up to which the weights reach `share` of the whole.
double value_at(std::span<const Said> ordered, double share, double whole) {
  double sum = 0;
  for (const Said& each : ordered) {
    sum += each.weight;
    if (sum >= (share - slack) * whole) return each.value;
  }
  return ordered.back().value;
}

/// The first value up to which they are more than that: value_at() from the other end, for what is left of
/// the whole. With equal weights a rank is reached exactly, and is exceeded by the next one.
double value_beyond(std::span<const Said> ordered, double share, double whole) {
  double sum = 0;
  for (const Said& each : ordered) {
    sum += each.weight;
    if (sum > (share + slack) * whole) return each.value;
  }
  return ordered.back().value;
}

/// One number a voice: the weighted mean of what it says.
std::vector<Said> by_voice(std::span<const Said> said) {
  std::vector<Said> voices(said.begin(), said.end());
  std::ranges::sort(voices, {},
                    [](const Said& each) { return std::tuple(each.voice, each.value, each.weight); });
  std::vector<Said> one;
  for (const Said& each : voices) {
    if (one.empty() || one.back().voice != each.voice) one.push_back({0, 0, each.voice});
    one.back().value += each.value * each.weight;
    one.back().weight += each.weight;
  }
  for (Said& each : one) each.value /= each.weight;
  return one;
}

double kish(std::span<const Said> one_a_voice) {
  double sum = 0, squares = 0;
  for (const Said& each : one_a_voice) {
    sum += each.weight;
    squares += each.weight * each.weight;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

/// About the weighted mean, with the weighted deviation: where caps differ, a centre without the weights
/// would be that of the voices and not of the card.
record::Interval student_interval(std::span<const Said> one_a_voice, double worth, double error) {
  double weight = 0, sum = 0, squares = 0;
  for (const Said& each : one_a_voice) {
    weight += each.weight;
    sum += each.weight * each.value;
  }
  const double centre = sum / weight;
  for (const Said& each : one_a_voice) squares += each.weight * (each.value - centre) * (each.value - centre);
  const double deviation = std::sqrt(squares / weight * worth / (worth - 1));
  const double half = stats::student_quantile(1 - error / 2, std::floor(worth + slack) - 1) * deviation /
                      std::sqrt(std::floor(worth + slack));
  return {centre - half, centre + half};
}

}  // namespace

void sort_by_value(std::vector<Said>& said) {
  std::ranges::sort(said, {},
                    [](const Said& each) { return std::tuple(each.value, each.voice, each.weight); });
}

double weighted_median(std::span<const Said> ordered) {
  const double whole = weight_of(ordered);
  if (!(whole > 0)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    sum += ordered[i].weight;
    if (sum < (0.5 - slack) * whole) continue;
    if (sum > (0.5 + slack) * whole) return ordered[i].value;
    std::size_t next = i + 1;  // the next one that has any weight
    while (next < ordered.size() && !(ordered[next].weight > slack * whole)) ++next;
    return next < ordered.size() ? (ordered[i].value + ordered[next].value) / 2 : ordered[i].value;
  }
  return ordered.back().value;
}

std::size_t order_rank(std::size_t n, double error) {
  if (n > most_exact) {  // by the normal approximation, rounded to the wide side
    const auto voices = static_cast<double>(n);
    const double rank = voices / 2 - stats::normal_quantile(1 - error / 2) * std::sqrt(voices) / 2 - 1;
    return rank >= 1 ? static_cast<std::size_t>(rank) : 0;
  }
  if (error != interval_error) return exact_rank(n, error);
  static const auto usual = [] {
    std::array<std::uint16_t, most_exact + 1> ranks{};
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ranks[i] = static_cast<std::uint16_t>(exact_rank(i, interval_error));
    return ranks;
  }();
  return usual[n];
}

double worth_of(std::span<const Said> said) { return kish(by_voice(said)); }

std::optional<record::Interval> median_interval(std::span<const Said> ordered, double error) {
  const std::vector<Said> voices = by_voice(ordered);
  const auto worth = static_cast<std::size_t>(kish(voices) + slack);
  if (voices.size() < 2 || worth < 2) return std::nullopt;
  const double whole = weight_of(ordered);
  record::Interval interval;
  if (const std::size_t rank = order_rank(worth, error); rank > 0) {
    const auto of = static_cast<double>(worth);
    interval.lo = value_beyond(ordered, static_cast<double>(rank - 1) / of, whole);
    interval.hi = value_at(ordered, static_cast<double>(worth + 1 - rank) / of, whole);
  } else {
    interval = student_interval(voices, kish(voices), error);
  }
  const double median = weighted_median(ordered);
  return record::Interval{std::min(interval.lo, median), std::max(interval.hi, median)};
}

Estimate estimate_of(std::vector<Said>& said, double error) {
  sort_by_value(said);
  Estimate estimate;
  estimate.median = weighted_median(said);
  estimate.ci = median_interval(said, error);
  estimate.machines = static_cast<int>(by_voice(said).size());
  return estimate;
}

}  // namespace furlong::fleet::internal
