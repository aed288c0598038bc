#include "furlong/audit/internal/costs.h"

#include <cmath>

#include "furlong/stats/centre.h"
#include "furlong/stats/confidence_sequence.h"

namespace furlong::audit::internal {
namespace {

/// A compiler on a busy machine takes this much longer for no reason of the kernel's.
const double kCompileThreshold = std::log(1.10);
/// Errors are measured on random inputs of each race, and another order of one sum moves them: what computes
/// alike stays well within this factor, while one bit less of precision doubles them.
const double kErrorThreshold = std::log(1.5);
/// Before the spread of noisy figures between races says anything.
constexpr int kFewestNoisyRaces = 3;

bool is_noisy(Measure measure) { return measure == Measure::compile_time || measure == Measure::energy; }

double threshold_of(Measure measure, double rate_threshold) {
  if (measure == Measure::error) return kErrorThreshold;
  return measure == Measure::compile_time ? kCompileThreshold : rate_threshold;
}

/// Infinite when only the default takes nothing; 0 when neither takes anything.
double log_ratio(double value, double beside) {
  if (value == beside) return 0;
  if (beside <= 0) return INFINITY;
  return value <= 0 ? -INFINITY : std::log(value / beside);
}

State opposite(State state) {
  switch (state) {
    case State::wins:
      return State::loses;
    case State::loses:
      return State::wins;
    case State::not_worse:
      return State::not_better;
    case State::not_better:
      return State::not_worse;
    default:
      return state;
  }
}

Cost cost_of(Measure measure, const std::vector<CostPair>& pairs, double threshold) {
  Cost cost;
  cost.measure = measure;
  std::vector<double> values, besides;
  std::map<int, std::vector<double>> by_race;
  for (const CostPair& pair : pairs) {
    values.push_back(pair.value);
    besides.push_back(pair.beside);
    by_race[pair.race].push_back(log_ratio(pair.value, pair.beside));
  }
  std::vector<double> races;
  for (auto& [race, ratios] : by_race) races.push_back(stats::median_in_place(ratios));
  cost.races = static_cast<int>(races.size());
  cost.value = stats::median(values);
  cost.beside = stats::median(besides);
  cost.log_ratio = stats::median(races);  // NaN when half are +infinity and half -infinity: open
  if (std::isnan(cost.log_ratio)) cost.log_ratio = 0;
  Spread spread;
  spread.races = cost.races;
  spread.low = spread.high = cost.log_ratio;
  if (is_noisy(measure)) {
    if (cost.races < kFewestNoisyRaces) return cost;
    const double half = stats::single_look_radius(cost.races, kRecordError) * stats::deviation(races);
    if (!std::isfinite(half)) return cost;
    const double mean = stats::mean(races);
    spread.low = mean - half;
    spread.high = mean + half;
  }
  cost.state = opposite(state_of(spread, threshold_of(measure, threshold)));
  return cost;
}

/// From races for energy, whose gains are of work per joule.
Cost energy_of(const Pairs& pairs, double threshold) {
  const Spread spread = spread_of(pairs.work_per_joule);
  Cost cost;
  cost.measure = Measure::energy;
  cost.races = spread.races;
  cost.log_ratio = -spread.estimate;
  cost.value = std::exp(-spread.estimate);
  cost.beside = 1;
  cost.state = state_of(spread, threshold);
  return cost;
}

}  // namespace

std::vector<Cost> costs_of(const Pairs& pairs, double threshold) {
  std::vector<Cost> costs;
  for (const auto& [measure, figures] : pairs.costs)
    if (measure != Measure::energy || pairs.work_per_joule.empty())
      costs.push_back(cost_of(measure, figures, threshold));
  if (!pairs.work_per_joule.empty()) costs.push_back(energy_of(pairs, threshold));
  return costs;
}

bool is_end(Measure measure) {
  return measure == Measure::error || measure == Measure::memory || measure == Measure::energy;
}

}  // namespace furlong::audit::internal
