// The end of a race: rates, duplicates, the verdict in words.

#include <algorithm>
#include <cmath>

#include "furlong/race/internal/run.h"
#include "furlong/stats/centre.h"

namespace furlong::race {
namespace {

std::string percent(double ratio) { return fmt::format("{:.2f}%", 100 * ratio); }

std::string heats_text(int heats) { return fmt::format("{} heat{}", heats, heats == 1 ? "" : "s"); }

}  // namespace

/// Units per second. Base: by the median over the accepted heats. Others: base's rate times the median, over
/// the variant's own heats, of how many times base's work it did: one that left early, in minutes when all
/// ran fast or slow, is so shown beside base as it ran beside base.
void Race::rates() {
  double base_cost_ms = NAN;
  for (Entrant& entrant : entrants_) {
    const bool base = entrant.index == 0;
    std::vector<double> cost;  // in ms for base, of base's for the others
    for (const HeatRecord& heat : outcome_.heats) {
      const double own_ms = heat.cost_ms[entrant.index];
      const double again_ms = heat.base_again_ms;
      if (heat.dropped || !std::isfinite(own_ms)) continue;
      const double beside_ms = std::isfinite(again_ms) ? 0.5 * (heat.cost_ms[0] + again_ms) : heat.cost_ms[0];
      cost.push_back(base ? own_ms : own_ms / beside_ms);
      if (base && std::isfinite(again_ms)) cost.push_back(again_ms);
    }
    VariantOutcome& outcome = *entrant.outcome;
    outcome.rate.reset();
    if (!cost.empty() && outcome.exit != Exit::gate && outcome.exit != Exit::launch) {
      const double median = stats::median_in_place(cost);
      if (base) base_cost_ms = median;
      outcome.rate = 1e3 * outcome.work_amount / (base ? median : median * base_cost_ms);
    }
    if (!entrant.energy.empty()) outcome.energy_j_per_unit = stats::median(entrant.energy);
    if (!entrant.power.empty()) outcome.power_w = stats::mean(entrant.power);
  }
  VariantOutcome& base = outcome_.variants[0];
  base.gain = base.low = base.high = base.rate ? 0.0 : NAN;
  const auto accepted = [](const HeatRecord& heat) {
    return !heat.dropped && std::isfinite(heat.cost_ms[0]);
  };
  if (base.heats == 0) base.heats = static_cast<int>(std::ranges::count_if(outcome_.heats, accepted));
}

void Race::share_with_duplicates() {
  for (VariantOutcome& copy : outcome_.variants) {
    if (copy.same_code_as.empty()) continue;
    const auto timed = std::ranges::find(outcome_.variants, copy.same_code_as, &VariantOutcome::name);
    if (timed == outcome_.variants.end()) continue;
    copy.gated = timed->gated;
    copy.rate = timed->rate;
    copy.gain = timed->gain;
    copy.low = timed->low;
    copy.high = timed->high;
    copy.heats = timed->heats;
    copy.error_ratio = timed->error_ratio;
    copy.energy_j_per_unit = timed->energy_j_per_unit;
    copy.power_w = timed->power_w;
    copy.occupancy = timed->occupancy;
    if (timed->exit != Exit::none) copy.why += fmt::format(" ({})", timed->why);
  }
}

std::string Race::sentence() const {
  const VariantOutcome& winner = outcome_.variants[outcome_.winner];
  const std::string what = options_.metric == Metric::energy ? "work per joule" : "rate";
  const std::string word = outcome_.verdict_word;
  const std::string interval =
      std::isfinite(winner.low) ? fmt::format(" ({} to {})", percent(winner.low), percent(winner.high)) : "";
  if (outcome_.heats.empty())
    return "nothing was timed before the race had to end: nothing could be said, and base stays";
  if (!outcome_.variants[0].rate) return "no heat was accepted: nothing could be said, and base stays";
  if (word == "none" && over_budget_ > 0)
    return fmt::format("only base was timed: the budget of {:g} s has no room for another variant",
                       options_.budget_s);
  if (word == "none") return "only base was timed: there was nothing to decide";
  if (outcome_.winner != 0) {
    const std::string how = word == "classic"         ? " by the plain rule"
                            : word == "out-of-budget" ? ", the best so far when the race had to end,"
                                                      : "";
    return fmt::format("{} beats base by {}{} in {}{} after {}", winner.name, percent(winner.gain), interval,
                       what, how, heats_text(winner.heats));
  }
  const int heats = outcome_.variants[0].heats;
  if (word == "classic")
    return fmt::format("base stays by the plain rule: nothing beats it by more than {} in {} after {}",
                       percent(options_.rules.threshold), what, heats_text(heats));
  if (word == "out-of-budget") {
    // Its own interval may lie above the threshold already: that is one variant's, and a switch answers for
    // all.
    const VariantOutcome* ahead = nullptr;
    for (const VariantOutcome& variant : outcome_.variants)
      if (variant.exit == Exit::none && variant.low > options_.rules.threshold &&
          (ahead == nullptr || variant.low > ahead->low))
        ahead = &variant;
    if (ahead != nullptr)
      return fmt::format(
          "base stays: the race had to end after {} before a switch was sure enough; '{}' by itself lies "
          "above {} in {} ({} to {} at {:g}%), yet a switch must be as sure over all variants together",
          heats_text(heats), ahead->name, percent(options_.rules.threshold), what, percent(ahead->low),
          percent(ahead->high), 100 * (1 - options_.rules.eliminate_error));
    return fmt::format(
        "base stays: nothing was shown to beat it by {} in {} before the race had to end, after {}",
        percent(options_.rules.threshold), what, heats_text(heats));
  }
  return fmt::format("dead heat: no variant beats base by {} in {}, after {}",
                     percent(options_.rules.threshold), what, heats_text(heats));
}

void Race::conclude() {
  rates();
  share_with_duplicates();
  outcome_.paused_ms = paused_ms();
  if (over_budget_ > 0)
    outcome_.notes.push_back(fmt::format("{} variant{} did not fit the budget of {:g} s", over_budget_,
                                         over_budget_ == 1 ? "" : "s", options_.budget_s));
  const bool all_copies = std::all_of(outcome_.variants.begin() + 1, outcome_.variants.end(),
                                      [](const VariantOutcome& v) { return v.exit == Exit::duplicate; });
  bool compared = all_copies && outcome_.variants.size() > 1;
  for (std::size_t i = 1; i < outcome_.variants.size(); ++i) compared |= outcome_.variants[i].heats > 0;
  if (!outcome_.variants[0].rate || !compared) {
    outcome_.verdict = stats::Verdict::undecided;
    outcome_.verdict_word = "none";
  } else if (options_.classic) {
    outcome_.verdict = outcome_.winner != 0 ? stats::Verdict::winner : stats::Verdict::dead_heat;
    outcome_.verdict_word = "classic";
  } else if (outcome_.verdict == stats::Verdict::winner) {
    outcome_.verdict_word = "winner";
  } else if (outcome_.verdict == stats::Verdict::out_of_budget || over_budget_ > 0) {
    outcome_.verdict = stats::Verdict::out_of_budget;  // of those left out nothing is known
    outcome_.verdict_word = "out-of-budget";
  } else {
    outcome_.verdict = stats::Verdict::dead_heat;
    outcome_.verdict_word = "dead-heat";
  }
  outcome_.sentence = sentence();
  outcome_.ts = iso_time(context_.clock->wall_us());
  outcome_.total_ms = now_ms() - start_ms_;
  progress(Phase::done, 1, 1, "", true);
}

}  // namespace furlong::race
