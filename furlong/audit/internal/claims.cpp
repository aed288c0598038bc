// Claims of the program file beside the evidence, and what --strict refuses.
#include <cmath>

#include "furlong/audit/internal/verdict.h"
#include "furlong/base/text.h"

namespace furlong::audit::internal {
namespace {

ClaimState in_regime(const lattice::Claim& claim, const RegimeEvidence& evidence, const Options& options) {
  const double threshold = std::log1p(options.threshold);
  const State state = evidence.state;
  const Spread& spread = evidence.spread;
  const bool fails = evidence.value_faulted();
  // What gave wrong values somewhere confirms nothing there: neither that it is slower nor that it is faster.
  const bool defect = evidence.value_defect() != nullptr;
  if (state == State::none && !fails) return ClaimState::open;
  bool confirmed = false, contradicted = fails;
  switch (claim.outcome) {
    case lattice::ClaimOutcome::wins:
      confirmed = state == State::wins && !fails;
      // A win below the threshold is no contradiction.
      contradicted |= state == State::loses || (spread.high < threshold && spread.low <= 0);
      break;
    case lattice::ClaimOutcome::loses:
      confirmed = state == State::loses || fails;
      contradicted = !fails && (state == State::wins || (spread.low > -threshold && spread.high >= 0));
      break;
    case lattice::ClaimOutcome::ties:
      confirmed = state == State::ties && !fails;
      contradicted |= state == State::wins || state == State::loses;
      break;
  }
  if (confirmed) return defect ? ClaimState::open : ClaimState::confirmed;
  return contradicted && evidence.races >= options.min_races ? ClaimState::contradicted : ClaimState::open;
}

void judge_in(const lattice::Expression& condition, const Options& options, const ValueReport& value,
              std::size_t regime, ClaimReport& report) {
  const RegimeEvidence& evidence = value.regimes[regime];
  const auto applies = condition.evaluate(evidence.regime.facts);
  if (!applies) return report.unjudged.push_back(regime);
  if (!applies->truthy()) return;
  switch (in_regime(report.claim, evidence, options)) {
    case ClaimState::confirmed:
      return report.confirming.push_back(regime);
    case ClaimState::contradicted:
      return report.contradicting.push_back(regime);
    case ClaimState::open:
      return report.undecided.push_back(regime);
  }
}

std::string regime_says(const RegimeEvidence& evidence) {
  std::string text;
  if (evidence.spread.races > 0)
    text = gain_text(evidence.spread.estimate, evidence.spread.low, evidence.spread.high) + " ";
  for (const Fault& fault : evidence.faults)
    if (!fault.of_default)
      text += fmt::format("{} fails ({}) ", one_line(fault.variant), one_line(fault.exit));
  return fmt::format("{}with {} ({} races)", text, evidence.regime.text(), evidence.races);
}

}  // namespace

std::vector<ClaimReport> judge_claims(const lattice::Knob& knob, const Options& options,
                                      const ValueReport& value) {
  std::vector<ClaimReport> reports;
  for (const lattice::Claim& claim : knob.claims) {
    if (claim.value != value.value) continue;
    ClaimReport report;
    report.claim = claim;
    const auto condition = lattice::claim_condition(claim);
    for (std::size_t r = 0; r < value.regimes.size(); ++r)
      condition ? judge_in(*condition, options, value, r, report) : report.unjudged.push_back(r);
    report.state = !report.contradicting.empty() ? ClaimState::contradicted
                   : !report.confirming.empty()  ? ClaimState::confirmed
                                                 : ClaimState::open;
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<std::string> contradictions(const lattice::Knob& knob, const KnobReport& report) {
  std::vector<std::string> found;
  for (const ValueReport& value : report.values) {
    const std::string name = fmt::format("knob '{}', value {}", knob.name, knob.values[value.value].text());
    if (value.verdict == Verdict::bake_in && !trim(knob.loses).empty())
      found.push_back(fmt::format("{}: the table says where it loses, but it {}", name, value.why));
    if (value.verdict == Verdict::drop && !trim(knob.wins).empty())
      found.push_back(fmt::format("{}: the table says where it wins, but it {}", name, value.why));
    for (const ClaimReport& claim : value.claims) {
      if (claim.contradicting.empty()) continue;
      const std::string where = claim.claim.where.empty() ? "everywhere" : "where " + claim.claim.where;
      const std::string line = claim.claim.line > 0 ? fmt::format(" (line {})", claim.claim.line) : "";
      found.push_back(fmt::format("{}: the claim that it {} {}{}: {}", name,
                                  lattice::claim_outcome_name(claim.claim.outcome), where, line,
                                  regime_says(value.regimes[claim.contradicting.front()])));
    }
  }
  return found;
}

}  // namespace furlong::audit::internal
