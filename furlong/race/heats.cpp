// Heats until decided, and the winner's second gate.

#include <algorithm>
#include <cmath>

#include "furlong/race/internal/run.h"

namespace furlong::race {
namespace {

constexpr int kMostDroppedInARow = 40;
constexpr std::size_t kBaseAloneHeats = 5;
constexpr std::uint64_t kSecondGate = 0x5EC0'7D6A'7E00ull;  // other inputs than the first gate's

/// What the race can still win: the most by which a variant that is not decided yet may beat what would serve
/// now.
double potential_gain(const stats::Elimination& state) {
  const std::size_t now = state.decide_now();
  const double have = now == 0 ? 0 : state.states()[now].gain;
  double most = 0;
  for (const std::size_t v : state.survivors())
    if (v != 0) most = std::max(most, state.states()[v].high - have);
  return most;
}

}  // namespace

/// A winner's second gate, as the slowest of those still in was gated.
double Race::second_gate_ms() const {
  double most = 0;
  for (const Entrant& entrant : entrants_)
    if (entrant.index != 0 && entrant.in()) most = std::max(most, gate_->cost_ms(entrant));
  return most;
}

double Race::first_heat_ms() const {
  double sum = sampler_->window_ms(entrants_[0]);  // base twice
  for (const Entrant& entrant : entrants_)
    if (entrant.in()) sum += sampler_->window_ms(entrant);
  return sum;
}

std::optional<std::string> Race::why_end_before(double next_pause_ms, double next_ms) const {
  if (since_base_s() > options_.budget_s)
    return fmt::format("the budget of {:g} s is used up", options_.budget_s);
  const double gate_ms = second_gate_ms();
  if (1e3 * left_s() < next_ms + gate_ms)
    return fmt::format("the next heat{} would pass the budget of {:g} s ({:.3g} s used)",
                       gate_ms > 0 ? " and a winner's second gate" : "", options_.budget_s, since_base_s());
  return why_end_at_cap(next_pause_ms);
}

std::optional<std::string> Race::why_end_at_cap(double next_pause_ms) const {
  const double paused = paused_ms() + held_ms_;
  if (options_.max_pause_ms > 0 && paused + next_pause_ms > options_.max_pause_ms)
    return fmt::format("the next heat would pass the pause cap of {:g} ms ({:.0f} ms used)",
                       options_.max_pause_ms, paused);
  return std::nullopt;
}

std::optional<std::string> Race::why_end(const stats::Elimination& state) {
  const double next_ms = last_heat_pause_ms_ > 0 ? last_heat_pause_ms_ : first_heat_ms();
  if (auto why = why_end_before(next_ms, last_heat_ms_ > 0 ? last_heat_ms_ : next_ms)) return why;
  if (dropped_in_a_row_ >= kMostDroppedInARow) {
    std::string last;
    if (!outcome_.heats.empty()) last = ": " + outcome_.heats.back().why_dropped;
    return fmt::format("{} heats in a row were dropped{}", dropped_in_a_row_, last);
  }
  if (options_.horizon_s > 0) {
    const double gain = potential_gain(state);
    const double worth_ms = 1e3 * options_.horizon_s * gain;
    if (std::isfinite(gain) && paused_ms() + next_ms > worth_ms)
      return fmt::format("at most {:.2f}% is left to win, which over {:g} s does not pay for more pause",
                         100 * gain, options_.horizon_s);
  }
  return std::nullopt;
}

Result<std::optional<stats::Heat>> Race::take_heat(const std::vector<std::size_t>& places,
                                                   const stats::Elimination& state) {
  std::vector<Entrant*> racing(entrants_.size(), nullptr);
  for (const std::size_t place : places)
    if (entrants_[place].in()) racing[place] = &entrants_[place];
  const std::size_t leader = state.leader();
  progress_.leader = entrants_[leader].name();
  progress_.leader_gain = leader == 0 ? 0 : state.states()[leader].gain;
  progress(state.confirming() ? Phase::confirm : Phase::heats, state.heats(), 0, "");
  const double paused = sampler_->paused_ms(), before_ms = now_ms();
  FURLONG_TRY(Sampler::Heat heat, sampler_->heat(racing, heat_number_++));
  heat.record.confirmation = state.confirming();
  const bool dropped = heat.record.dropped;
  outcome_.dropped_heats += dropped;
  outcome_.descheduled_heats += heat.record.descheduled;
  dropped_in_a_row_ = dropped ? dropped_in_a_row_ + 1 : 0;
  stats::Heat measured;
  for (std::size_t i = 0; i < entrants_.size(); ++i)
    measured.cost.push_back(heat.record.cost_ms[i] / entrants_[i].outcome->work_amount);
  measured.base_again = heat.record.base_again_ms / entrants_[0].outcome->work_amount;
  outcome_.heats.push_back(std::move(heat.record));
  if (heat.failure) FURLONG_CHECK(on_failure(*heat.failure->entrant, heat.failure->error, "timing"));
  if (dropped) return std::optional<stats::Heat>();
  last_heat_pause_ms_ = sampler_->paused_ms() - paused;
  last_heat_ms_ = now_ms() - before_ms;
  return std::optional<stats::Heat>(std::move(measured));
}

Result<bool> Race::second_gate(Entrant& winner) {
  if (options_.metric == Metric::energy && !energy_stage_) return true;  // its gate comes after the energy
  // The heats left time for one second gate. When its winner failed, the next may be too late.
  if (!energy_stage_ && left_s() <= 0) {
    over_budget(winner, Exit::gate, "second gate: not gated: budget");
    return false;
  }
  progress(Phase::second_gate, 0, 1, winner.name(), true);
  Entrant* entrants[] = {&winner};
  Gate::Asked asked;
  asked.base = &entrants_[0];
  asked.entrants = entrants;
  asked.seed = options_.seed ^ kSecondGate;
  asked.held_ms = &held_ms_;
  asked.failed = [&](Entrant& entrant, const Error& error) {
    return on_failure(entrant, error, "second gate");
  };
  asked.doing = [&](const Entrant&) { return stopped(); };
  const double before = now_ms();
  FURLONG_CHECK(gate_->run(asked));
  outcome_.gate_ms += now_ms() - before;
  if (winner.in()) return true;
  FURLONG_CHECK(gate_->load_timed(options_.seed));
  return false;
}

Status Race::base_alone() {
  const stats::Elimination nobody(1, options_.rules);
  std::size_t accepted = 0;
  while (accepted < kBaseAloneHeats) {
    if (auto why = why_end(nobody)) {
      outcome_.notes.push_back(*why);
      break;
    }
    FURLONG_TRY(const auto heat, take_heat({0}, nobody));
    accepted += heat.has_value();
  }
  return {};
}

Status Race::heats() {
  if (challengers() == 0) return base_alone();
  ContestAsked asked;
  asked.entrants = everyone();
  asked.rules = options_.rules;
  asked.take = [&](const std::vector<std::size_t>& places, const stats::Elimination& state) {
    return take_heat(places, state);
  };
  asked.ended = [&](const stats::Elimination& state) { return why_end(state); };
  asked.second_gate = [&](Entrant& winner) { return second_gate(winner); };
  FURLONG_TRY(const ContestResult result, run_contest(asked));
  take_result(result, asked.entrants);
  return {};
}

void Race::take_result(const ContestResult& result, const std::vector<Entrant*>& entrants) {
  outcome_.verdict = result.verdict;
  outcome_.winner = entrants[result.winner]->index;
  if (!result.why_ended.empty()) outcome_.notes.push_back(result.why_ended);
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    const stats::VariantState& state = result.states[i];
    VariantOutcome& outcome = *entrants[i]->outcome;
    outcome.heats = state.heats;
    outcome.gain = state.heats > 0 ? state.gain : NAN;
    outcome.low = std::isfinite(state.low) && std::isfinite(state.high) ? state.low : NAN;
    outcome.high = std::isfinite(outcome.low) ? state.high : NAN;
    if (!state.out || outcome.exit != Exit::none || i == result.winner) continue;
    outcome.exit = Exit::eliminated;
    outcome.why = state.why_out;
  }
}

}  // namespace furlong::race
