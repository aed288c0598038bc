// The race for energy: the fastest few work for seconds at a stretch each, since a power counter resolves no
// less, and joules per unit of work are compared by the same statistics as times are.

#include <algorithm>
#include <cmath>

#include "furlong/race/internal/hold.h"
#include "furlong/race/internal/long_window.h"
#include "furlong/race/internal/run.h"
#include "furlong/stats/heat_order.h"

namespace furlong::race {
namespace {

constexpr std::size_t kMostFinalists = 5;  // base among them
constexpr double kSlowest = 0.8;           // of the fastest rate: slower ones are no finalists
constexpr double kWarmUp_s = 0.1;  // before the counter is read: the card is then at this variant's power

/// Base, then the fastest; a variant that lost the race for rate may still need the least energy.
std::vector<Entrant*> finalists_of(std::vector<Entrant>& entrants) {
  std::vector<Entrant*> timed;
  for (Entrant& entrant : entrants)
    if (entrant.index != 0 && entrant.outcome->rate && !entrant.timed.launches.empty() &&
        entrant.outcome->gated)
      timed.push_back(&entrant);
  std::ranges::sort(timed, [](const Entrant* a, const Entrant* b) {
    return *a->outcome->rate != *b->outcome->rate ? *a->outcome->rate > *b->outcome->rate
                                                  : a->index < b->index;
  });
  std::vector<Entrant*> finalists{&entrants[0]};
  for (Entrant* entrant : timed)
    if (finalists.size() < kMostFinalists && *entrant->outcome->rate >= kSlowest * *timed[0]->outcome->rate)
      finalists.push_back(entrant);
  return finalists;
}

}  // namespace

/// Whether the variant still runs; its Error when the race cannot go on.
Result<bool> Race::measure_energy(Entrant& entrant) {
  auto window = long_window(context_, options_, *sampler_, entrant, kWarmUp_s);
  if (window) window = long_window(context_, options_, *sampler_, entrant, options_.energy_window_s);
  FURLONG_CHECK(stopped());
  if (!window) {
    FURLONG_CHECK(on_failure(entrant, window.error(), "energy"));
    return false;
  }
  if (!window->joules || !(*window->joules > 0))
    return fail(Code::unavailable, "the energy counter of {} stood still", outcome_.device.address());
  entrant.energy.push_back(*window->joules / (window->launches * entrant.outcome->work_amount));
  entrant.power.push_back(*window->joules / window->elapsed_s);
  return true;
}

Result<std::optional<stats::Heat>> Race::take_energy(const std::vector<Entrant*>& finalists,
                                                     const std::vector<std::size_t>& places) {
  HeatRecord record;
  record.at_s = 1e-3 * (now_ms() - first_ms_);
  record.cost_ms.assign(entrants_.size(), NAN);
  record.energy_j_per_unit.assign(entrants_.size(), NAN);
  record.base_again_ms = NAN;
  stats::Heat heat;
  heat.cost.assign(finalists.size(), NAN);
  heat.base_again = NAN;
  for (const std::size_t place : stats::heat_order(places, heat_number_++, options_.seed)) {
    FURLONG_CHECK(stopped());
    Entrant& entrant = *finalists[place];
    progress(Phase::heats, outcome_.heats.size(), 0, entrant.name());
    FURLONG_TRY(const bool measured, measure_energy(entrant));
    if (!measured) return std::optional<stats::Heat>();
    record.order.push_back(static_cast<std::uint32_t>(entrant.index));
    record.energy_j_per_unit[entrant.index] = entrant.energy.back();
    double& cost = place == 0 && std::isfinite(heat.cost[0]) ? heat.base_again : heat.cost[place];
    cost = entrant.energy.back();
  }
  record.telemetry = read_telemetry(context_);
  outcome_.heats.push_back(std::move(record));
  return std::optional<stats::Heat>(std::move(heat));
}

Status Race::energy() {
  energy_stage_ = true;
  rates();
  const std::vector<Entrant*> finalists = finalists_of(entrants_);
  for (Entrant* entrant : finalists) {
    if (entrant->outcome->exit == Exit::eliminated) entrant->outcome->exit = Exit::none;
    entrant->outcome->why.clear();
  }
  for (Entrant& entrant : entrants_) {
    if (std::ranges::find(finalists, &entrant) != finalists.end()) continue;
    entrant.outcome->gain = entrant.outcome->low = entrant.outcome->high = NAN;  // those were of the rate
    if (!entrant.in()) continue;
    entrant.outcome->exit = Exit::eliminated;
    entrant.outcome->why = "too slow to be a finalist for energy";
  }
  if (finalists.size() < 2) return {};
  const double start = now_ms();
  ContestAsked asked;
  asked.entrants = finalists;
  asked.rules = options_.rules;
  asked.take = [&](const std::vector<std::size_t>& places, const stats::Elimination&) {
    return take_energy(finalists, places);
  };
  asked.ended = [&](const stats::Elimination& state) -> std::optional<std::string> {
    const double next_ms = 1e3 * (options_.energy_window_s + kWarmUp_s) *
                           static_cast<double>(state.survivors().size() + 1);  // base twice
    if (now_ms() - start + next_ms > 1e3 * options_.energy_budget_s)
      return fmt::format("the next heat would pass the energy budget of {:g} s ({:.3g} s used)",
                         options_.energy_budget_s, 1e-3 * (now_ms() - start));
    return why_end_at_cap(next_ms);
  };
  asked.second_gate = [&](Entrant& winner) { return second_gate(winner); };
  FURLONG_TRY(const ContestResult result, run_contest(asked));
  take_result(result, finalists);
  return {};
}

}  // namespace furlong::race
