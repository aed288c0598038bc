// The plain rule, for comparison: each turn gates one variant and times it alone, the fastest wins.

#include "furlong/stats/classic.h"

#include <algorithm>
#include <cmath>

#include "furlong/race/internal/hold.h"
#include "furlong/race/internal/long_window.h"
#include "furlong/race/internal/run.h"

namespace furlong::race {
/// One round: the cost in ms of each variant by the mean over its window, NaN for those that are out.
Status Race::classic_round(std::vector<double>& cost, HeatRecord& record) {
  cost.assign(entrants_.size(), NAN);
  record.cost_ms.assign(entrants_.size(), NAN);
  record.base_again_ms = NAN;
  const double turn_ms = 1e3 * options_.classic_window_s;
  std::size_t turn = 0;
  for (Entrant& entrant : entrants_) {
    if (!entrant.in()) continue;
    progress(Phase::heats, turn++, 1 + challengers(), entrant.name());
    if (auto why = why_end_before(turn_ms, turn_ms)) {
      outcome_.notes.push_back(fmt::format("round {} was not finished: {}", outcome_.heats.size() + 1, *why));
      return {};
    }
    auto window = long_window(context_, options_, *sampler_, entrant, options_.classic_window_s);
    FURLONG_CHECK(stopped());
    if (!window) {
      FURLONG_CHECK(on_failure(entrant, window.error(), "timing"));
      continue;
    }
    record.order.push_back(static_cast<std::uint32_t>(entrant.index));
    record.cost_ms[entrant.index] = window->mean_ms;
    cost[entrant.index] = window->mean_ms / entrant.outcome->work_amount;
    if (options_.keep_samples) record.samples_ms.push_back(std::move(window->samples_ms));
  }
  return {};
}

Status Race::classic() {
  std::vector<std::vector<double>> rounds;
  const stats::ClassicRules rules{options_.rules.threshold, options_.classic_window_s, options_.rounds};
  for (int round = 0; round < options_.rounds; ++round) {
    if (auto why = why_end_before(1e3 * options_.classic_window_s, 1e3 * options_.classic_window_s)) {
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
  if (rounds.empty()) return {};  // no room for a turn: nothing was timed
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
