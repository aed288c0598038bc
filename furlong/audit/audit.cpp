#include "furlong/audit/audit.h"

#include <algorithm>
#include <cmath>

#include "furlong/audit/internal/collect.h"
#include "furlong/audit/internal/costs.h"
#include "furlong/audit/internal/verdict.h"
#include "furlong/base/text.h"

namespace furlong::audit {
namespace {

RegimeEvidence evidence_of(internal::Pairs& pairs, double threshold) {
  RegimeEvidence evidence;
  evidence.races = static_cast<int>(pairs.races.size());
  evidence.spread = internal::spread_of(pairs.rates);
  evidence.state = internal::state_of(evidence.spread, threshold);
  for (const auto& [beside, samples] : pairs.by_context) {
    Context context{beside, internal::spread_of(samples), State::none};
    context.state = internal::state_of(context.spread, threshold);
    evidence.contexts.push_back(std::move(context));
  }
  evidence.costs = internal::costs_of(pairs, threshold);
  evidence.regime = std::move(pairs.regime);
  evidence.faults = std::move(pairs.faults);
  evidence.defects = std::move(pairs.defects);
  return evidence;
}

ValueReport report_of(const lattice::Knob& knob, std::size_t value, internal::ValueEvidence& evidence,
                      const Options& options) {
  ValueReport report;
  report.value = value;
  report.without_partner = evidence.without_partner;
  report.partner = evidence.partner;
  report.fell_back = evidence.fell_back;
  report.untimed = evidence.untimed;
  for (auto& [key, pairs] : evidence.regimes) {
    report.regimes.push_back(evidence_of(pairs, std::log1p(options.threshold)));
    report.races += report.regimes.back().races;  // a race is of one regime
    report.pairs += report.regimes.back().spread.pairs;
  }
  internal::judge(knob, options, report);
  report.claims = internal::judge_claims(knob, options, report);
  return report;
}

}  // namespace

Report audit(const lattice::Lattice& lattice, std::span<const record::RaceRecord> records,
             const Options& options) {
  internal::Collected collected = internal::collect(lattice, records, options);
  Report report = std::move(collected.report);
  for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
    const lattice::Knob& knob = lattice.knobs[k];
    KnobReport one;
    one.knob = k;
    for (std::size_t v = 0; v < knob.values.size(); ++v)
      if (v != knob.default_index) one.values.push_back(report_of(knob, v, collected.values[k][v], options));
    internal::sum_up(knob, one);
    for (std::string& text : internal::contradictions(knob, one))
      report.contradictions.push_back(std::move(text));
    report.knobs.push_back(std::move(one));
  }
  return report;
}

std::string Regime::text() const {
  std::string text = program_class.empty() ? "any class" : record::class_text(program_class);
  text += " on " + (card.empty() ? "a card without a name" : card);
  if (!driver.empty()) text += ", driver " + driver;
  return one_line(text);
}

bool RegimeEvidence::value_faulted() const {
  return std::ranges::any_of(faults, [](const Fault& fault) { return !fault.of_default; });
}

bool RegimeEvidence::default_faulted() const {
  return std::ranges::any_of(faults, [](const Fault& fault) { return fault.of_default; });
}

const Fault* RegimeEvidence::value_defect() const {
  const auto found = std::ranges::find(defects, false, &Fault::of_default);
  return found == defects.end() ? nullptr : &*found;
}

bool is_defect(std::string_view exit) { return exit == "gate" || exit == "trial" || exit == "quarantined"; }

std::string exit_text(std::string_view exit) {
  if (exit == "quarantined") return "is quarantined";
  if (is_defect(exit)) return fmt::format("failed its {}", exit);
  return "left with " + one_line(std::string(exit));
}

std::string_view state_name(State state) {
  switch (state) {
    case State::none:
      return "none";
    case State::open:
      return "open";
    case State::wins:
      return "wins";
    case State::loses:
      return "loses";
    case State::ties:
      return "ties";
    case State::not_worse:
      return "not worse";
    case State::not_better:
      break;
  }
  return "not better";
}

std::string_view measure_name(Measure measure) {
  switch (measure) {
    case Measure::error:
      return "error";
    case Measure::memory:
      return "memory";
    case Measure::registers:
      return "registers";
    case Measure::spills:
      return "spills";
    case Measure::compile_time:
      return "compile time";
    case Measure::energy:
      break;
  }
  return "energy";
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::trade_off:
      return "trade-off";
    case Verdict::bake_in:
      return "bake in";
    case Verdict::drop:
      return "drop";
    case Verdict::unproven:
      break;
  }
  return "unproven";
}

std::string_view claim_state_name(ClaimState state) {
  switch (state) {
    case ClaimState::confirmed:
      return "confirmed";
    case ClaimState::contradicted:
      return "contradicted";
    case ClaimState::open:
      break;
  }
  return "open";
}

}  // namespace furlong::audit
