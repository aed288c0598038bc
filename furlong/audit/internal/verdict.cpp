#include "furlong/audit/internal/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "furlong/audit/internal/costs.h"
#include "furlong/audit/internal/pool.h"
#include "furlong/base/text.h"

namespace furlong::audit::internal {
namespace {

/// Most races that are asked for: a difference so near the threshold is not worth more.
constexpr int kMostMissing = 99;

double log_threshold(const Options& options) { return std::log1p(options.threshold); }

std::string percent(double log_ratio) { return fmt::format("{:+.2f}%", 100 * std::expm1(log_ratio)); }

std::string counted(int count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

Place rate_place(std::size_t regime, const Spread& spread, std::string beside = {}) {
  return {.regime = regime,
          .beside = std::move(beside),
          .measure = {},
          .fault = {},
          .estimate = spread.estimate,
          .low = spread.low,
          .high = spread.high};
}

bool by_rate(const Place& place) { return !place.fault && !place.measure; }

/// Where a value wins and where it loses, with confidence.
struct Places {
  std::vector<Place> wins, losses;
};

/// Says a win (or a loss) that its regime does not say.
bool says_more(const Context& context, const RegimeEvidence& evidence, State state) {
  return context.state == state && evidence.state != state;
}

/// A race has many contexts, so that by chance one of them may look unlike the others: each needs as many
/// races as a regime that counts for "bake in".
void add_contexts(Places& places, std::size_t r, const RegimeEvidence& evidence, const Options& options) {
  for (const Context& context : evidence.contexts) {
    if (context.spread.races < options.min_races) continue;
    if (says_more(context, evidence, State::wins))
      places.wins.push_back(rate_place(r, context.spread, context.beside));
    if (says_more(context, evidence, State::loses))
      places.losses.push_back(rate_place(r, context.spread, context.beside));
  }
}

Places places_of(const ValueReport& value, const Options& options) {
  Places places;
  for (std::size_t r = 0; r < value.regimes.size(); ++r) {
    const RegimeEvidence& evidence = value.regimes[r];
    if (evidence.state == State::wins) places.wins.push_back(rate_place(r, evidence.spread));
    if (evidence.state == State::loses) places.losses.push_back(rate_place(r, evidence.spread));
    add_contexts(places, r, evidence, options);
    for (std::size_t f = 0; f < evidence.faults.size(); ++f)
      (evidence.faults[f].of_default ? places.wins : places.losses)
          .push_back({.regime = r, .beside = {}, .measure = {}, .fault = f});
    for (const Cost& cost : evidence.costs) {
      const Place place{.regime = r, .beside = {}, .measure = cost.measure};
      if (cost.state == State::loses) places.losses.push_back(place);
      if (cost.state == State::wins && is_end(cost.measure)) places.wins.push_back(place);
    }
  }
  return places;
}

/// Rate before faults before costs; of rates the surest.
Place strongest(const std::vector<Place>& places, bool win) {
  const auto rank = [](const Place& place) { return by_rate(place) ? 0 : place.fault ? 1 : 2; };
  return *std::ranges::min_element(places, [&](const Place& a, const Place& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    if (!by_rate(a)) return false;
    return win ? a.low > b.low : a.high < b.high;
  });
}

/// The regimes of the highest and lowest rate, whatever their intervals say.
void find_extremes(ValueReport& value) {
  for (std::size_t r = 0; r < value.regimes.size(); ++r) {
    const Spread& spread = value.regimes[r].spread;
    if (spread.races == 0) continue;
    if (!value.best || spread.estimate > value.best->estimate) value.best = rate_place(r, spread);
    if (!value.worst || spread.estimate < value.worst->estimate) value.worst = rate_place(r, spread);
  }
}

std::string defect_text(const RegimeEvidence& evidence, const Fault& defect) {
  return fmt::format("{} {} with {}", one_line(defect.variant), exit_text(defect.exit),
                     evidence.regime.text());
}

/// The first defect of the value, in words; empty: none.
std::string first_defect(const ValueReport& value) {
  for (const RegimeEvidence& evidence : value.regimes)
    if (const Fault* defect = evidence.value_defect()) return defect_text(evidence, *defect);
  return "";
}

bool has_evidence(const RegimeEvidence& evidence) {
  return evidence.state != State::none || evidence.value_faulted() || evidence.default_faulted();
}

/// Whether the regime rules out a loss (for "bake in") or a win (for "drop") beyond the threshold.
bool rules_out(const RegimeEvidence& evidence, bool loss) {
  if (evidence.value_faulted()) return !loss;
  if (evidence.state == State::ties) return true;
  if (evidence.state == State::none && evidence.default_faulted())
    return loss;  // it runs, the default does not
  if (loss) return evidence.state == State::wins || evidence.state == State::not_worse;
  return evidence.state == State::loses || evidence.state == State::not_better;
}

/// The first context with the loss (or win) that the verdict must rule out, of too few races to decide it.
struct Hint {
  Place place;
  int races = 0;
};
std::optional<Hint> hint_of(const ValueReport& value, bool loss, const Options& options) {
  for (std::size_t r = 0; r < value.regimes.size(); ++r)
    for (const Context& context : value.regimes[r].contexts)
      if (context.spread.races < options.min_races &&
          says_more(context, value.regimes[r], loss ? State::loses : State::wins))
        return Hint{rate_place(r, context.spread, context.beside), context.spread.races};
  return std::nullopt;
}

/// Races after which the interval, shrinking with their square root, would leave the threshold out.
int races_missing(const RegimeEvidence& evidence, bool loss, const Options& options) {
  const Spread& spread = evidence.spread;
  if (spread.races == 0) return options.min_races;
  if (spread.disagree) return std::max(1, kRacesOfSignTest - spread.races);
  const double bound = loss ? -log_threshold(options) : log_threshold(options);
  const double distance = std::abs(spread.estimate - bound);
  const double half = loss ? spread.estimate - spread.low : spread.high - spread.estimate;
  const double needed = distance > 0 ? spread.races * (half / distance) * (half / distance) : INFINITY;
  if (!(needed < kMostMissing)) return kMostMissing;
  return std::clamp(static_cast<int>(std::ceil(needed)) - spread.races, 1, kMostMissing);
}

/// How much evidence there is for "bake in" (`loss`) or "drop", and how much is missing; true when enough.
bool enough(ValueReport& value, bool loss, const Options& options) {
  std::vector<int> races;
  for (const RegimeEvidence& evidence : value.regimes) {
    if (evidence.value_defect() != nullptr) value.races_missing += options.min_races;  // once it is mended
    if (!has_evidence(evidence)) continue;
    races.push_back(evidence.races);
    if (!rules_out(evidence, loss)) value.races_missing += races_missing(evidence, loss, options);
  }
  if (const auto hint = hint_of(value, loss, options)) value.races_missing += options.min_races - hint->races;
  bool all = value.races_missing == 0;
  std::ranges::sort(races, std::greater<>());
  const auto wanted = static_cast<std::size_t>(options.min_regimes);
  for (std::size_t r = 0; r < wanted; ++r) {
    if (r >= races.size()) ++value.regimes_missing;
    const int short_of = options.min_races - (r < races.size() ? races[r] : 0);
    if (short_of <= 0) continue;
    all = false;
    value.races_missing += short_of;
  }
  return all;
}

std::string declared_price(const lattice::Knob& knob, std::size_t value) {
  std::vector<std::string> prices;
  if (!trim(knob.requires_text).empty()) prices.push_back("it needs " + knob.requires_text);
  if (knob.lossy.contains(value)) prices.emplace_back("it lowers the precision");
  if (knob.restricted.contains(value)) prices.emplace_back("it is right for some inputs only");
  return join(prices, ", ");
}

std::string evidence_text(const ValueReport& value) {
  const auto regimes = static_cast<int>(std::ranges::count_if(value.regimes, has_evidence));
  return fmt::format("in {} ({})", counted(regimes, "regime"), counted(value.races, "race"));
}

std::string missing_text(const ValueReport& value) {
  std::string text = fmt::format("at least {} missing", counted(value.races_missing, "more race"));
  if (value.regimes_missing > 0)
    text += fmt::format(", among them {}", counted(value.regimes_missing, "more regime"));
  return text;
}

void say_nothing_known(ValueReport& value, const Options& options) {
  value.regimes_missing = options.min_regimes;
  value.races_missing = options.min_regimes * options.min_races;
  if (const std::string defect = first_defect(value); !defect.empty()) {
    value.why = defect + ", and is to be mended before it is judged";
  } else if (value.fell_back > 0 && value.without_partner == 0) {
    value.why = fmt::format(
        "named {}, but shape or chip could not have it or the default beside it, and another kernel ran",
        counted(value.fell_back, "time"));
  } else if (value.without_partner > 0) {
    value.why = fmt::format("raced {}, never beside {}, which differs in this knob alone",
                            counted(value.without_partner, "time"), one_line(value.partner));
  } else if (value.untimed > 0) {
    value.why = "raced, but never timed with an interval beside the default";
  } else {
    value.why = "never raced";
  }
  value.why += "; " + missing_text(value);
}

void say_trade_off(ValueReport& value, const Places& places, const std::string& price) {
  value.verdict = Verdict::trade_off;
  value.best = strongest(places.wins, true);
  value.why = "wins: " + place_text(value, *value.best);
  if (places.losses.empty()) {
    value.why += "; its price is declared: " + price;
    return;
  }
  value.worst = strongest(places.losses, false);
  value.why += "; loses: " + place_text(value, *value.worst);
}

}  // namespace

std::string gain_text(double estimate, double low, double high) {
  return fmt::format("{} ({} to {})", percent(estimate), percent(low), percent(high));
}

std::string place_text(const ValueReport& value, const Place& place) {
  const RegimeEvidence& evidence = value.regimes[place.regime];
  std::string text;
  if (place.fault) {
    const Fault& fault = evidence.faults[*place.fault];
    text = fmt::format("{} fails ({})", one_line(fault.variant), one_line(fault.exit));
  } else if (place.measure) {
    const auto cost = std::ranges::find(evidence.costs, *place.measure, &Cost::measure);
    text = fmt::format("{} {} ({:.4g} beside {:.4g})", cost->log_ratio > 0 ? "more" : "less",
                       measure_name(*place.measure), cost->value, cost->beside);
  } else {
    text = gain_text(place.estimate, place.low, place.high);
  }
  text += " with " + evidence.regime.text();
  if (!place.beside.empty()) text += ", beside " + one_line(place.beside);
  return text;
}

void judge(const lattice::Knob& knob, const Options& options, ValueReport& value) {
  find_extremes(value);
  if (std::ranges::none_of(value.regimes, has_evidence)) return say_nothing_known(value, options);
  const Places places = places_of(value, options);
  const bool wins = !places.wins.empty(), loses = !places.losses.empty();
  const std::string price = declared_price(knob, value.value);
  if (wins && (loses || !price.empty())) return say_trade_off(value, places, price);
  if (loses) value.worst = strongest(places.losses, false);
  if (wins) value.best = strongest(places.wins, true);
  const std::string beyond = fmt::format("beyond {:g}%", 100 * options.threshold);
  const std::string found = wins    ? "wins: " + place_text(value, *value.best)
                            : loses ? "loses: " + place_text(value, *value.worst)
                                    : "";
  if (enough(value, wins, options)) {
    value.verdict = wins ? Verdict::bake_in : Verdict::drop;
    value.why = fmt::format("never {} {} {}", wins ? "loses" : "wins", beyond, evidence_text(value));
    if (!found.empty()) value.why += "; " + found;
    return;
  }
  value.why = fmt::format("no {} found {} {}", wins ? "loss" : "win", beyond, evidence_text(value));
  if (!found.empty()) value.why += "; " + found;
  if (const std::string defect = first_defect(value); !defect.empty()) value.why += "; " + defect;
  if (const auto hint = hint_of(value, wins, options))
    value.why += fmt::format("; in {} only it {}: {}", counted(hint->races, "race"), wins ? "loses" : "wins",
                             place_text(value, hint->place));
  value.why += fmt::format("; for \"{}\" {}", wins ? "bake in" : "drop", missing_text(value));
}

void sum_up(const lattice::Knob& knob, KnobReport& report) {
  std::map<Verdict, std::vector<std::string>> by_verdict;
  for (const ValueReport& value : report.values)
    by_verdict[value.verdict].push_back(knob.values[value.value].text());
  const auto named = [&](Verdict verdict) { return join(by_verdict[verdict], ", "); };
  std::vector<std::string> parts;
  if (by_verdict.contains(Verdict::trade_off)) {
    report.verdict = Verdict::trade_off;
  } else if (by_verdict.contains(Verdict::bake_in)) {
    report.verdict = Verdict::bake_in;
  } else if (by_verdict.contains(Verdict::drop) && by_verdict.size() == 1) {
    report.verdict = Verdict::drop;
    report.summary = "drop the knob: no value beats the default anywhere";
    return;
  }
  for (const Verdict verdict : {Verdict::trade_off, Verdict::bake_in, Verdict::drop, Verdict::unproven})
    if (by_verdict.contains(verdict))
      parts.push_back(fmt::format("{}: {}", verdict_name(verdict), named(verdict)));
  report.summary = join(parts, "; ");
}

}  // namespace furlong::audit::internal
