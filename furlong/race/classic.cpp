// The plain rule, for comparison: each turn gates one variant and times it alone, the fastest wins.

#include "furlong/stats/classic.h"

#include <algorithm>
#include <cmath>

#include "furlong/race/internal/hold.h"
#include "furlong/race/internal/run.h"

namespace furlong::race {
namespace {

constexpr double kSliceMs = 250;  // of one window, so that a stop is heard

}  // namespace

/// One round: the cost in ms of each variant by the mean over its window, NaN for those that are out.
Status Race::classic_round(std::vector<double>& cost, HeatRecord& record) {
  cost.assign(entrants_.size(), NAN);
  record.cost_ms.assign(entrants_.size(), NAN);
  record.base_again_ms = NAN;
  std::size_t turn = 0;
  for (Entrant& entrant : entrants_) {
    if (!entrant.in()) continue;
    progress(Phase::heats, turn++, 1 + challengers(), entrant.name());
    if (why_end_before(1e3 * options_.classic_window_s)) return {};
    const WindowPlan plan =
        plan_window(entrant.estimate_ms, entrant.estimate_ms,
                    std::min(kSliceMs, 1e3 * options_.classic_window_s), options_.cache == CacheState::hot);
    double sum_ms = 0, count = 0;
    std::vector<float> samples;
    const double start = now_ms();
    while (count == 0 || now_ms() - start < 1e3 * options_.classic_window_s) {
      FURLONG_CHECK(stopped());
      auto window = sampler_->window(entrant, plan);
      if (!window) {
        FURLONG_CHECK(on_failure(entrant, window.error(), "timing"));
        break;
      }
      for (const double sample : *window) sum_ms += sample;
      count += static_cast<double>(window->size());
      if (options_.keep_samples) samples.insert(samples.end(), window->begin(), window->end());
    }
    if (!entrant.in()) continue;
    record.order.push_back(static_cast<std::uint32_t>(entrant.index));
    record.cost_ms[entrant.index] = sum_ms / count;
    cost[entrant.index] = sum_ms / count / entrant.outcome->work_amount;
    if (options_.keep_samples) record.samples_ms.push_back(std::move(samples));
  }
  return {};
}

Status Race::classic() {
  std::vector<std::vector<double>> rounds;
  const stats::ClassicRules rules{options_.rules.threshold, options_.classic_window_s, options_.rounds};
  for (int round = 0; round < options_.rounds; ++round) {
    if (auto why = why_end_before(1e3 * options_.classic_window_s)) {
      outcome_.notes.push_back(*why);
      break;
    }
    HeatRecord record;
    record.at_s = 1e-3 * (now_ms() - first_ms_);
    rounds.emplace_back();
    FURLONG_CHECK(classic_round(rounds.back(), record));
    record.telemetry = read_telemetry(context_);
    outcome_.heats.push_back(std::move(record));
  }
  for (;;) {
    for (std::vector<double>& cost : rounds)
      for (const Entrant& entrant : entrants_)
        if (!entrant.in()) cost[entrant.index] = NAN;
    const stats::ClassicResult result = stats::classic(rounds, rules);
    for (Entrant& entrant : entrants_) {
      VariantOutcome& outcome = *entrant.outcome;
      outcome.gain = result.gain[entrant.index];
      outcome.heats = static_cast<int>(std::ranges::count_if(
          rounds, [&](const std::vector<double>& cost) { return std::isfinite(cost[entrant.index]); }));
    }
    outcome_.winner = result.winner;
    if (result.winner == 0) return {};
    FURLONG_TRY(const bool passed, second_gate(entrants_[result.winner]));
    if (passed) return {};
  }
}

}  // namespace furlong::race
