#include "furlong/stats/elimination.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "furlong/stats/confidence_sequence.h"
#include "furlong/stats/internal/window_filter.h"

namespace furlong::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Chosen by the calibration in docs/race-statistics.md; `race-statistics` shows what they give.
constexpr int kMinimumHeats = 4;
constexpr double kReach = 3;            // scales beyond which a window is pulled in
constexpr double kPriorDegrees = 4;     // what the common window noise is worth in a variant's own variance
constexpr double kEffectVariance = 10;  // narrowest intervals at about six heats
// A lag-1 correlation is uncertain by about 1 / sqrt(samples). The common one is taken that much high (the
// error must not be exceeded because correlation was missed), a variant's own that much low (most are white).
constexpr double kCommonMargin = 1, kOwnMargin = 1;
constexpr double kFarBehind = 0.2;  // log cost over the slower base window
constexpr int kFarBehindHeats = 2;
constexpr double kTieError = 0.05;  // a wrong tie costs little more than the tie width, never a switch
// Variance of a gain (one window against the mean of base's two) and of a difference of two gains, in
// variances of one window.
constexpr double kGainVariance = 1.5, kDifferenceVariance = 2;

bool timed(double cost) { return std::isfinite(cost) && cost > 0; }

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

struct Bounds {
  double low = -kInfinity, high = kInfinity;
  double half() const { return (high - low) / 2; }
};

}  // namespace

struct Elimination::Impl {
  Impl(std::size_t count, RaceRules given, std::vector<int> ranks);

  // Statistics.
  std::vector<std::size_t> add(const Heat& heat);
  void take(const std::vector<double>& gains);
  RunningMoments& pair(std::size_t a, std::size_t b) { return pairs[a * variants + b]; }  // a < b
  double common_correlation() const;
  Bounds bounds(const RunningMoments& samples, double window_variances, RadiusTable& radius) const;
  Bounds difference(std::size_t a, std::size_t b, RadiusTable& radius);  // of log gains, a over b

  // Decisions.
  void evaluate();
  void against_base(std::size_t v);
  void against_leader();
  void qualify();
  void settle();
  void confirm();
  void finish();
  void put_out(std::size_t v, Reason reason, std::string why, std::size_t by = 0);
  void provisional(const internal::LogHeat& heat);
  void take_fresh(const internal::LogHeat& heat);
  void far_behind(const internal::LogHeat& heat);
  bool confirmed(std::size_t v);
  std::size_t best(bool must_be_confirmed);
  std::vector<std::size_t> challengers() const;

  std::size_t variants;
  RaceRules rules;
  std::vector<int> complexity;
  int minimum_heats;
  double log_threshold;
  RadiusTable eliminate_radius, win_radius, confirm_radius, tie_radius;
  internal::WindowFilter filter;

  std::vector<VariantState> states;
  std::vector<RunningMoments> gains;                 // per variant, log
  std::vector<RunningMoments> pairs;                 // per pair of challengers, differences of log gains
  std::vector<std::optional<RunningMoments>> fresh;  // since the variant qualified
  std::vector<double> raw_gain;                      // sum over the opening
  std::vector<int> behind_heats;
  std::vector<std::size_t> newly_out;
  double correlation = 0;
  std::size_t settled = 0;  // the variant that only needs confirming; 0: none
  Verdict verdict = Verdict::undecided;
  int heats = 0;
};

Elimination::Impl::Impl(std::size_t count, RaceRules given, std::vector<int> ranks)
    : variants(std::max<std::size_t>(count, 1)),
      rules(given),
      complexity(std::move(ranks)),
      minimum_heats(given.minimum_heats > 0 ? given.minimum_heats : kMinimumHeats),
      log_threshold(std::log1p(given.threshold)),
      eliminate_radius(given.eliminate_error, kEffectVariance, kPriorDegrees),
      // The winning error is shared by all challengers (Bonferroni).
      win_radius(given.win_error / static_cast<double>(std::max<std::size_t>(variants, 2) - 1),
                 kEffectVariance, kPriorDegrees),
      confirm_radius(given.win_error, kEffectVariance, kPriorDegrees),
      tie_radius(kTieError, kEffectVariance, kPriorDegrees),
      filter(variants, minimum_heats, kReach),
      states(variants),
      gains(variants),
      pairs(variants * variants),
      fresh(variants),
      raw_gain(variants, 0.0),
      behind_heats(variants, 0) {
  for (std::size_t v = complexity.size(); v < variants; ++v) complexity.push_back(static_cast<int>(v));
  states[0].low = states[0].high = 0;
  finish();  // base alone has nobody to race
}

std::vector<std::size_t> Elimination::Impl::challengers() const {
  std::vector<std::size_t> list;
  for (std::size_t v = 1; v < variants; ++v)
    if (!states[v].out) list.push_back(v);
  return list;
}

std::vector<std::size_t> Elimination::Impl::add(const Heat& heat) {
  if (verdict != Verdict::undecided) return {};
  internal::LogHeat logs{std::vector<double>(variants, kNaN), kNaN};
  for (std::size_t v = 0; v < std::min(variants, heat.cost.size()); ++v)
    if (!states[v].out && timed(heat.cost[v])) logs.log_cost[v] = std::log(heat.cost[v]);
  if (timed(heat.base_again)) logs.base_again = std::log(heat.base_again);
  // Without base there is nothing to compare with.
  if (std::isnan(logs.log_cost[0]) && std::isnan(logs.base_again)) return {};
  for (std::size_t v = 0; v < variants; ++v)
    if (v == 0 || !std::isnan(logs.log_cost[v])) ++states[v].heats;
  if (filter.opening()) provisional(logs);
  far_behind(logs);
  take_fresh(logs);
  for (const std::vector<double>& ready : filter.add(logs)) take(ready);
  evaluate();
  ++heats;
  return std::exchange(newly_out, {});
}

void Elimination::Impl::provisional(const internal::LogHeat& heat) {
  // A plain mean until the opening is cleaned, so that a progress bar has something to show.
  for (std::size_t v = 1; v < variants; ++v) {
    if (std::isnan(heat.log_cost[v])) continue;
    raw_gain[v] += heat.base() - heat.log_cost[v];
    states[v].gain = std::expm1(raw_gain[v] / states[v].heats);
  }
}

void Elimination::Impl::take_fresh(const internal::LogHeat& heat) {
  // As measured: what the filter expects comes from the heats that chose the variant.
  for (std::size_t v = 1; v < variants; ++v)
    if (fresh[v] && !std::isnan(heat.log_cost[v])) fresh[v]->add(heat.base() - heat.log_cost[v]);
}

void Elimination::Impl::far_behind(const internal::LogHeat& heat) {
  const double slower_base = std::fmax(heat.log_cost[0], heat.base_again);
  for (std::size_t v = 1; v < variants; ++v) {
    if (states[v].out || std::isnan(heat.log_cost[v])) continue;
    const bool behind = heat.log_cost[v] - slower_base > kFarBehind;
    behind_heats[v] = behind ? behind_heats[v] + 1 : 0;
    if (behind_heats[v] == kFarBehindHeats && states[v].heats == kFarBehindHeats)
      put_out(v, Reason::far_behind,
              fmt::format("far slower than base ({:+.0f}%) in each of its first {} heats",
                          percent(slower_base - heat.log_cost[v]), kFarBehindHeats));
  }
}

void Elimination::Impl::take(const std::vector<double>& sample) {
  for (std::size_t v = 1; v < variants; ++v) {
    if (std::isnan(sample[v])) continue;
    gains[v].add(sample[v]);
    for (std::size_t w = v + 1; w < variants; ++w)
      if (!std::isnan(sample[w])) pair(v, w).add(sample[v] - sample[w]);
  }
}

double Elimination::Impl::common_correlation() const {
  // Lag-1 correlation over all variants. The sample value is low by 1/n for white noise (Kendall 1954).
  double products = 0, squares = 0, freedom = 0;
  for (const RunningMoments& g : gains) {
    if (g.count() < 3) continue;
    const auto n = static_cast<double>(g.count());
    products += g.lag_products() + g.squares() / n;
    squares += g.squares();
    freedom += n - 1;
  }
  return squares > 0 ? products / squares + kCommonMargin / std::sqrt(freedom) : 0;
}

Bounds Elimination::Impl::bounds(const RunningMoments& samples, double window_variances,
                                 RadiusTable& radius) const {
  if (samples.count() < 2) return {};
  const auto n = static_cast<double>(samples.count());
  double half;
  if (rules.interval == Interval::uncorrected) {
    half = 1.96 * std::sqrt(samples.variance() / n);
  } else {
    const double own =
        samples.squares() > 0
            ? (samples.lag_products() + samples.squares() / n) / samples.squares() - kOwnMargin / std::sqrt(n)
            : 0;
    const double prior = kPriorDegrees * window_variances * filter.scale() * filter.scale();
    half = radius.at(samples.count()) * std::sqrt(samples.squares() + prior) *
           correlation_inflation(std::max(correlation, own));
  }
  if (!std::isfinite(half)) return {};
  return {samples.mean() - half, samples.mean() + half};
}

Bounds Elimination::Impl::difference(std::size_t a, std::size_t b, RadiusTable& radius) {
  const Bounds d = bounds(pair(std::min(a, b), std::max(a, b)), kDifferenceVariance, radius);
  return a < b ? d : Bounds{-d.high, -d.low};
}

void Elimination::Impl::put_out(std::size_t v, Reason reason, std::string why, std::size_t by) {
  VariantState& state = states[v];
  if (v == 0 || state.out) return;
  state.out = true;
  state.out_at_heat = heats;
  state.reason = reason;
  state.beaten_by = by;
  state.why_out = std::move(why);
  if (settled == v) settled = 0;
  newly_out.push_back(v);
}

void Elimination::Impl::evaluate() {
  verdict = Verdict::undecided;
  if (!filter.opening()) {
    correlation = common_correlation();
    for (std::size_t v : challengers()) against_base(v);
    against_leader();
    qualify();
    settle();
    confirm();
  }
  finish();
}

void Elimination::Impl::against_base(std::size_t v) {
  if (gains[v].count() < 2) return;
  const Bounds gain = bounds(gains[v], kGainVariance, eliminate_radius);
  states[v].gain = std::expm1(gains[v].mean());
  // All intervals of the sequence hold at once, so what is shown is their intersection: it never takes back
  // what was once shown. Where noise makes two of them disjoint, the newest stands.
  const double low = std::fmax(states[v].low, std::expm1(gain.low));
  const double high = std::fmin(states[v].high, std::expm1(gain.high));
  states[v].low = low <= high ? low : std::expm1(gain.low);
  states[v].high = low <= high ? high : std::expm1(gain.high);
  if (gains[v].count() < minimum_heats) return;
  if (gain.high < log_threshold) {
    put_out(v, Reason::base, fmt::format("beats base by {:+.2f}% at most", percent(gain.high)));
  } else if (gain.half() < rules.indifference && !fresh[v] &&
             bounds(gains[v], kGainVariance, win_radius).low <= log_threshold) {
    put_out(v, Reason::indifferent,
            fmt::format("a dead heat with base: {:+.2f}% is within {:.2f}% of the threshold",
                        percent(gains[v].mean()), percent(gain.half())));
  }
}

void Elimination::Impl::against_leader() {
  const std::size_t leader = best(false);
  if (leader == 0) return;
  for (std::size_t v : challengers()) {
    if (v == leader || gains[v].count() < minimum_heats) continue;
    const Bounds lead = difference(leader, v, eliminate_radius);
    if (lead.low > 0)
      put_out(v, Reason::leader, fmt::format("slower than the leader by {:.2f}% at least", percent(lead.low)),
              leader);
  }
}

void Elimination::Impl::qualify() {
  for (std::size_t v : challengers()) {
    if (fresh[v] || gains[v].count() < minimum_heats) continue;
    // What comes after this heat had no part in choosing the variant: its fresh heats.
    if (bounds(gains[v], kGainVariance, win_radius).low > log_threshold) fresh[v].emplace();
  }
}

void Elimination::Impl::settle() {
  if (settled != 0) return;
  const std::vector<std::size_t> in = challengers();
  const double width = std::log1p(rules.tie_width);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t j = i + 1; j < in.size(); ++j) {
      const Bounds d = difference(in[i], in[j], tie_radius);
      if (d.low < -width || d.high > width) return;
    }
  // One is left, or any will do: the simplest of those known to win.
  for (std::size_t v : in)
    if (fresh[v] && (settled == 0 || complexity[v] < complexity[settled])) settled = v;
}

bool Elimination::Impl::confirmed(std::size_t v) {
  return fresh[v] && bounds(*fresh[v], kGainVariance, confirm_radius).low > 0;
}

void Elimination::Impl::confirm() {
  if (settled == 0 || fresh[settled]->count() < 2) return;
  const Bounds again = bounds(*fresh[settled], kGainVariance, confirm_radius);
  if (again.low > 0) {
    verdict = Verdict::winner;
  } else if (again.high < log_threshold || again.half() < rules.indifference) {
    put_out(settled, Reason::unconfirmed,
            fmt::format("fresh heats did not confirm it: {:+.2f}% at most", percent(again.high)));
  }
}

void Elimination::Impl::finish() {
  const std::vector<std::size_t> in = challengers();
  if (in.empty()) {
    verdict = Verdict::dead_heat;
  } else if (verdict == Verdict::winner) {
    const std::size_t winner = settled;
    for (std::size_t v : in)
      if (v != winner)
        put_out(v, Reason::tie,
                fmt::format("within {:.2f}% of the winner: any will do", 100 * rules.tie_width), winner);
  }
}

std::size_t Elimination::Impl::best(bool must_be_confirmed) {
  std::size_t found = 0;
  for (std::size_t v = 1; v < variants; ++v) {
    if (states[v].out || gains[v].count() < minimum_heats) continue;
    if (must_be_confirmed && !confirmed(v)) continue;
    if (found == 0 || gains[v].mean() > gains[found].mean()) found = v;
  }
  return found;
}

Elimination::Elimination(std::size_t variants, RaceRules rules, std::vector<int> complexity)
    : impl_(std::make_unique<Impl>(variants, rules, std::move(complexity))) {}
Elimination::~Elimination() = default;
Elimination::Elimination(Elimination&&) noexcept = default;
Elimination& Elimination::operator=(Elimination&&) noexcept = default;

std::vector<std::size_t> Elimination::add(const Heat& heat) { return impl_->add(heat); }

void Elimination::withdraw(std::size_t variant, std::string why) {
  Impl& race = *impl_;
  if (variant == 0 || variant >= race.variants) return;  // base is never discarded
  VariantState& state = race.states[variant];
  if (state.out && state.reason != Reason::tie) return;
  if (state.out) {  // it might have taken the winner's place
    state.reason = Reason::withdrawn;
    state.why_out = std::move(why);
    return;
  }
  const bool was_winner = race.verdict == Verdict::winner && race.settled == variant;
  race.put_out(variant, Reason::withdrawn, std::move(why));
  std::erase(race.newly_out, variant);  // the caller knows
  if (was_winner) {
    // Those that were tied with it take its place.
    for (VariantState& other : race.states)
      if (other.reason == Reason::tie && other.beaten_by == variant) {
        other.out = false;
        other.out_at_heat = -1;
        other.reason = Reason::in;
        other.beaten_by = 0;
        other.why_out.clear();
      }
  }
  race.evaluate();
}

bool Elimination::confirming() const { return impl_->verdict == Verdict::undecided && impl_->settled != 0; }
Verdict Elimination::verdict() const { return impl_->verdict; }

std::size_t Elimination::decide_now() const {
  if (impl_->verdict == Verdict::winner) return impl_->settled;
  return impl_->best(true);
}

std::size_t Elimination::leader() const {
  if (impl_->settled != 0) return impl_->settled;
  const std::size_t best = impl_->best(false);
  return best != 0 && impl_->gains[best].mean() > 0 ? best : 0;
}

const std::vector<VariantState>& Elimination::states() const { return impl_->states; }
std::size_t Elimination::heats() const { return static_cast<std::size_t>(impl_->heats); }

std::vector<std::size_t> Elimination::survivors() const {
  if (impl_->settled != 0) return {0, impl_->settled};
  std::vector<std::size_t> list = impl_->challengers();
  list.insert(list.begin(), 0);
  return list;
}

}  // namespace furlong::stats
