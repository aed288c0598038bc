#include "furlong/fleet/aggregate/internal/choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "furlong/fleet/aggregate/internal/numbers.h"
#include "furlong/fleet/aggregate/internal/row.h"

namespace furlong::fleet::internal {
namespace {

constexpr std::string_view base_name = "base";

std::string counted(int count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// One row's choice, step by step.
class Chooser {
 public:
  Chooser(RowEvidence& row, const RowOrders& orders, const AggregateOptions& options)
      : row_(row), orders_(orders), options_(options) {}

  void choose() {
    find_best();
    list_candidates();
    if (!row_.publishable) return none("a manifest cannot carry the program's name");
    if (orders_.pin != nullptr) return pin(orders_.pin->variant);
    if (const auto* previous = orders_.previous; previous != nullptr && !previous->race && holds(*previous))
      return;
    if (best_ == nullptr) return none(no_best_text());
    row_.variant = best_->name;
    row_.choice = Choice::race;
    const std::string unstable = why_not_stable(*best_);
    if (unstable.empty()) row_.choice = Choice::pinned_by_stability;
    row_.why = lapsed_ + best_text() +
               (unstable.empty()
                    ? fmt::format("; pinned, since its interval lies above {:g}%", options_.threshold_pct)
                    : "; raced, since " + unstable);
  }

 private:
  bool has_samples(const VariantEvidence& variant) const {
    return variant.publishable && variant.gain_pct.samples >= options_.min_samples;
  }
  double standing(const VariantEvidence& variant) const { return standing_of(variant, options_.rank); }

  const VariantEvidence* find(std::string_view name) const {
    const auto at = std::ranges::find(row_.variants, name, &VariantEvidence::name);
    return at == row_.variants.end() ? nullptr : &*at;
  }

  /// Variants stand best first; base before its equals.
  void find_best() {
    for (const VariantEvidence& variant : row_.variants)
      if (has_samples(variant) && best_ == nullptr) best_ = &variant;
    const VariantEvidence* base = find(base_name);
    // Base that nobody may name as winner for want of samples is still no worse than a loser.
    if (best_ != nullptr && base != nullptr && standing(*best_) <= standing(*base)) best_ = base;
    // Nor is one whose figures are in dispute.
    if (best_ != nullptr && base == nullptr && options_.rank == Rank::gain && standing(*best_) <= 0)
      best_ = &unknown_base_;
  }

  bool near_best(const VariantEvidence& variant) const {
    const double best = standing(*best_), here = standing(variant);
    return options_.rank == Rank::rate ? here >= best * (1 - options_.near_pct / 100)
                                       : here >= best - options_.near_pct;
  }

  void list_candidates() {
    if (best_ == nullptr) return;
    for (const VariantEvidence& variant : row_.variants)
      if (variant.name != base_name && has_samples(variant) && near_best(variant))
        row_.candidates.push_back(variant.name);
    row_.candidates.emplace_back(base_name);
  }

  void put_first(const std::string& variant) {
    std::erase(row_.candidates, variant);
    row_.candidates.insert(row_.candidates.begin(), variant);
    if (variant == base_name) std::ranges::rotate(row_.candidates, row_.candidates.begin() + 1);
    if (std::ranges::find(row_.candidates, base_name) == row_.candidates.end())
      row_.candidates.emplace_back(base_name);
  }

  void none(std::string why) {
    row_.variant.clear();
    row_.candidates.clear();
    row_.choice = Choice::none;
    row_.why = std::move(why);
  }

  void keep_terms(const record::TuningRow& previous) {
    row_.race_every_n = previous.race_every_n;
    row_.min_driver = previous.min_driver;
  }

  void pin(const std::string& variant) {
    row_.variant = variant;
    row_.choice = Choice::pinned_by_operator;
    if (const auto* previous = orders_.previous;
        row_.source.empty() && previous != nullptr && !previous->race && previous->variant == variant)
      row_.source = previous->source;
    row_.why = fmt::format("{} is pinned by the operator", variant);
    if (const auto* previous = orders_.previous; previous != nullptr && previous->variant == variant)
      keep_terms(*previous);
    if (const VariantEvidence* evidence = find(variant); evidence != nullptr && variant != base_name)
      row_.why += fmt::format(": {}", gain_text(evidence->gain_pct));
    if (best_ != nullptr && best_->name != variant)
      row_.why += fmt::format("; by its races it would be {}", best_text());
    if (std::ranges::find(row_.candidates, variant) == row_.candidates.end()) put_first(variant);
  }

  std::string best_text() const {
    if (best_->name == base_name)
      return fmt::format("base stays: of {} raced on {} nothing is faster by the median",
                         counted(raced_besides_base(), "other variant", "other variants"),
                         counted(row_.machines, "machine", "machines"));
    std::string text = fmt::format("{}: {}", best_->name, gain_text(best_->gain_pct));
    if (options_.rank == Rank::rate) text += ", ranked by rate";
    if (const VariantEvidence* better = unproven())
      text += fmt::format("; {} shows {:+.2f}%, but on {} of {} machines: too few to speak for the card",
                          better->name, better->gain_pct.median, better->gain_pct.machines, row_.machines);
    return text;
  }

  int raced_besides_base() const {
    return static_cast<int>(std::ranges::count_if(row_.variants, [](const VariantEvidence& variant) {
      return variant.name != base_name && variant.gain_pct.samples > 0;
    }));
  }

  /// A variant that looks better where it was raced and yet does not stand for the card.
  const VariantEvidence* unproven() const {
    const VariantEvidence* found = nullptr;
    for (const VariantEvidence& variant : row_.variants)
      if (options_.rank == Rank::gain && has_samples(variant) && &variant != best_ &&
          variant.gain_pct.median > best_->gain_pct.median + options_.near_pct &&
          (found == nullptr || variant.gain_pct.median > found->gain_pct.median))
        found = &variant;
    return found;
  }

  std::string no_best_text() const {
    if (row_.samples == 0)
      return fmt::format("no race of it counted ({})",
                         counted(row_.seen_pinned, "pinned run", "pinned runs"));
    return fmt::format("no variant has {} samples ({} in all)", options_.min_samples,
                       counted(row_.samples, "race", "races"));
  }

  /// Empty: it is stable.
  std::string why_not_stable(const VariantEvidence& variant) const {
    if (variant.name == base_name) return "base is what is raced against";
    const Estimate& gain = variant.gain_pct;
    if (gain.machines < options_.stable_machines)
      return fmt::format("{} of the {} machines that a pin needs have raced it", gain.machines,
                         options_.stable_machines);
    if (gain.races < options_.stable_races)
      return fmt::format("{} of the {} races that a pin needs are there", gain.races, options_.stable_races);
    if (!gain.ci || !(gain.ci->lo > options_.threshold_pct))
      return fmt::format("its interval does not lie above {:g}%", options_.threshold_pct);
    return {};
  }

  /// The pin of the tuning before stays until the evidence speaks against it. Fills the row when it does.
  bool holds(const record::TuningRow& previous) {
    if (!orders_.previous_source_seen) {
      lapsed_ = fmt::format("{} was pinned, but the program's text has changed; ", previous.variant);
      return false;
    }
    const VariantEvidence* pinned = find(previous.variant);
    const std::string against = speaks_against(previous.variant, pinned);
    if (!against.empty()) {
      lapsed_ = fmt::format("{} was pinned, but {}; ", previous.variant, against);
      return false;
    }
    row_.variant = previous.variant;
    row_.choice = Choice::pinned_by_stability;
    keep_terms(previous);
    // A window that holds the text before and the one after would leave none, and the pin for ever.
    if (!previous.source.empty()) row_.source = previous.source;
    const bool enough = pinned != nullptr && has_samples(*pinned);
    if (!enough) row_.carried = previous;
    row_.why = enough ? fmt::format("{} stays pinned: {}, and nothing speaks against it", previous.variant,
                                    gain_text(pinned->gain_pct))
                      : fmt::format("{} stays pinned: {} of it and {}, and nothing speaks against it",
                                    previous.variant,
                                    counted(pinned == nullptr ? 0 : pinned->gain_pct.races, "race", "races"),
                                    counted(row_.seen_pinned, "pinned run", "pinned runs"));
    if (std::ranges::find(row_.candidates, previous.variant) == row_.candidates.end())
      put_first(previous.variant);
    return true;
  }

  /// Enough machines for an interval that no one of them makes alone.
  bool can_speak(const VariantEvidence& variant) const {
    return has_samples(variant) && variant.gain_pct.machines >= options_.stable_machines &&
           variant.gain_pct.ci.has_value();
  }

  std::string speaks_against(const std::string& name, const VariantEvidence* evidence) const {
    const VariantEvidence nothing{.name = name, .not_raced = static_cast<double>(row_.machines)};
    const VariantEvidence& pinned = evidence == nullptr ? nothing : *evidence;
    // Few machines that still race it must not hold the pin of all others.
    if (2 * pinned.not_raced > row_.machines && pinned.not_raced >= options_.stable_machines &&
        row_.races - pinned.gain_pct.races >= options_.stable_races)
      return fmt::format("{} of {} races on {} of {} machines timed it", pinned.gain_pct.races, row_.races,
                         pinned.gain_pct.machines, row_.machines);
    if (can_speak(pinned) && pinned.gain_pct.ci->hi < options_.threshold_pct)
      return fmt::format("its interval now lies under {:g}%: {}", options_.threshold_pct,
                         gain_text(pinned.gain_pct));
    if (best_ == nullptr || best_->name == pinned.name || best_->name == base_name || !can_speak(*best_))
      return {};
    const bool is_base = pinned.name == base_name;
    if (!is_base && !can_speak(pinned)) return {};
    const double reached = is_base ? options_.threshold_pct : pinned.gain_pct.ci->hi;
    if (!(best_->gain_pct.ci->lo > reached)) return {};
    return fmt::format("{} is better: {} against {}", best_->name, gain_text(best_->gain_pct),
                       is_base ? std::string("base") : gain_text(pinned.gain_pct));
  }

  RowEvidence& row_;
  const RowOrders& orders_;
  const AggregateOptions& options_;
  const VariantEvidence* best_ = nullptr;
  const VariantEvidence unknown_base_{.name = std::string(base_name)};
  std::string lapsed_;
};

/// What back ends are compared by: the winner's rate, or its rate per watt.
Estimate rate_of(const RowEvidence& row, By by) {
  Estimate rate;
  if (row.carried) rate.median = (by == By::energy ? row.carried->rate_per_w : row.carried->rate).value_or(0);
  for (const VariantEvidence& variant : row.variants)
    if (variant.name == row.variant && !row.carried)
      rate = by == By::energy ? variant.rate_per_w : variant.rate;
  if (std::isnan(rate.median)) rate.median = 0;
  return rate;
}

/// Without intervals, as on a card of which there is one machine: by more than its races may differ by.
constexpr double clearly_faster_pct = 10;

bool clearly_faster(const Estimate& rate, const Estimate& before) {
  if (rate.ci && before.ci) return rate.ci->lo > before.ci->hi;
  return rate.median > before.median * (1 + clearly_faster_pct / 100);
}

/// The rows of one program and class on one card.
class BackEnds {
 public:
  BackEnds(std::span<const RowMachines* const> group, By by)
      : group_(group), by_(by), metric_(by == By::energy ? "energy" : "") {
    for (const RowMachines* each : group) all_.insert(each->machines.begin(), each->machines.end());
  }

  const RowMachines* leader() const {
    const RowMachines* best = *std::ranges::min_element(group_, [&](const auto* a, const auto* b) {
      return std::tuple(key(a), a->row->subject) < std::tuple(key(b), b->row->subject);
    });
    for (const RowMachines* each : group_)
      if (each->incumbent && keeps_its_place(*each, *best)) best = each;
    return best;
  }

 private:
  bool has_majority(const RowMachines& each) const { return 2 * each.machines.size() > all_.size(); }

  /// A back end that few machines raced with may be made up; the others' row must not hang on it.
  std::tuple<bool, bool, bool> rank(const RowMachines& each) const {
    return {each.row->choice == Choice::none, !has_majority(each), each.row->subject.metric != metric_};
  }

  /// Without a majority rates may be anybody's: then it is the number of machines that counts.
  std::tuple<std::tuple<bool, bool, bool>, std::int64_t, double, int> key(const RowMachines* each) const {
    const std::int64_t machines = has_majority(*each) ? 0 : static_cast<std::int64_t>(each->machines.size());
    return {rank(*each), -machines, -rate_of(*each->row, by_).median, -each->row->machines};
  }

  bool keeps_its_place(const RowMachines& before, const RowMachines& best) const {
    if (rank(before) != rank(best)) return false;
    if (has_majority(best)) return !clearly_faster(rate_of(*best.row, by_), rate_of(*before.row, by_));
    return 2 * before.machines.size() >= best.machines.size();
  }

  const std::span<const RowMachines* const> group_;
  const By by_;
  const std::string_view metric_;
  std::set<std::string> all_;
};

}  // namespace

std::string gain_text(const Estimate& gain) {
  if (gain.samples == 0) return "not raced";
  const std::string interval =
      gain.ci ? fmt::format(" ({:+.2f}% to {:+.2f}%)", shown(gain.ci->lo), shown(gain.ci->hi))
              : std::string();
  return fmt::format("{:+.2f}%{} on {}, {}", shown(gain.median), interval,
                     counted(gain.machines, "machine", "machines"), counted(gain.races, "race", "races"));
}

void choose(RowEvidence& row, const RowOrders& orders, const AggregateOptions& options) {
  Chooser(row, orders, options).choose();
}

void choose_back_ends(const std::vector<RowMachines>& rows, const AggregateOptions& options) {
  std::map<std::pair<std::string, std::string>, std::vector<const RowMachines*>> groups;
  for (const RowMachines& each : rows)
    groups[{each.row->subject.program, each.row->subject.program_class}].push_back(&each);
  for (const auto& [program, group] : groups) {
    const RowMachines* best = BackEnds(group, options.by).leader();
    best->row->leads = best->row->choice != Choice::none;
  }
}

}  // namespace furlong::fleet::internal
