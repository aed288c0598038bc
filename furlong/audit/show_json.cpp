// The report for programs (docs/formats/audit.md).
#include <cmath>

#include "furlong/audit/audit.h"
#include "furlong/base/json.h"
#include "furlong/lattice/value_json.h"

namespace furlong::audit {
namespace {

/// Percent of a log ratio, to six decimals, so that all libraries of mathematics write the same; JSON has no
/// infinity.
Json percent(double log_ratio) {
  const double value = std::round(1e8 * std::expm1(log_ratio)) / 1e6;
  return std::isfinite(value) ? Json(value) : Json();
}

Json spread_json(const Spread& spread, State state) {
  Json json{{"races", spread.races}, {"pairs", spread.pairs}, {"state", std::string(state_name(state))}};
  if (spread.races == 0) return json;
  json["gain_pct"] = percent(spread.estimate);
  json["ci"] = {percent(spread.low), percent(spread.high)};
  json["median_pct"] = percent(spread.median);
  json["min_pct"] = percent(spread.min);
  json["max_pct"] = percent(spread.max);
  json["disagree"] = spread.disagree;
  return json;
}

Json faults_json(const std::vector<Fault>& faults) {
  Json json = Json::array();
  for (const Fault& fault : faults)
    json.push_back(Json{{"variant", fault.variant},
                        {"exit", fault.exit},
                        {"why", fault.why},
                        {"races", fault.races},
                        {"of_default", fault.of_default}});
  return json;
}

Json regime_json(const RegimeEvidence& evidence) {
  Json json{{"card", evidence.regime.card},
            {"driver", evidence.regime.driver},
            {"class", record::class_to_json(evidence.regime.program_class)},
            {"races", evidence.races},
            {"rate", spread_json(evidence.spread, evidence.state)}};
  Json contexts = Json::array();
  for (const Context& context : evidence.contexts) {
    Json one = spread_json(context.spread, context.state);
    one["beside"] = context.beside;
    contexts.push_back(std::move(one));
  }
  json["contexts"] = std::move(contexts);
  json["faults"] = faults_json(evidence.faults);
  json["defects"] = faults_json(evidence.defects);
  Json costs = Json::array();
  for (const Cost& cost : evidence.costs)
    costs.push_back(Json{{"measure", std::string(measure_name(cost.measure))},
                         {"races", cost.races},
                         {"value", cost.value},
                         {"beside", cost.beside},
                         {"change_pct", percent(cost.log_ratio)},
                         {"state", std::string(state_name(cost.state))}});
  json["costs"] = std::move(costs);
  return json;
}

Json place_json(const ValueReport& value, const std::optional<Place>& place) {
  if (!place) return Json();
  Json json{{"regime", place->regime}};
  if (!place->beside.empty()) json["beside"] = place->beside;
  if (place->fault) {
    json["fault"] = value.regimes[place->regime].faults[*place->fault].variant;
  } else if (place->measure) {
    json["measure"] = std::string(measure_name(*place->measure));
  } else {
    json["gain_pct"] = percent(place->estimate);
    json["ci"] = {percent(place->low), percent(place->high)};
  }
  return json;
}

Json claim_json(const ClaimReport& claim) {
  return Json{{"outcome", std::string(lattice::claim_outcome_name(claim.claim.outcome))},
              {"where", claim.claim.where},
              {"line", claim.claim.line},
              {"state", std::string(claim_state_name(claim.state))},
              {"confirming", claim.confirming},
              {"contradicting", claim.contradicting},
              {"undecided", claim.undecided},
              {"unjudged", claim.unjudged}};
}

Json value_report_json(const lattice::Knob& knob, const ValueReport& value) {
  Json json{{"value", lattice::value_json(knob.values[value.value])},
            {"verdict", std::string(verdict_name(value.verdict))},
            {"why", value.why},
            {"races", value.races},
            {"pairs", value.pairs},
            {"races_missing", value.races_missing},
            {"regimes_missing", value.regimes_missing},
            {"without_partner", value.without_partner},
            {"fell_back", value.fell_back},
            {"untimed", value.untimed},
            {"best", place_json(value, value.best)},
            {"worst", place_json(value, value.worst)}};
  if (!value.partner.empty()) json["partner"] = value.partner;
  Json regimes = Json::array();
  for (const RegimeEvidence& evidence : value.regimes) regimes.push_back(regime_json(evidence));
  json["regimes"] = std::move(regimes);
  Json claims = Json::array();
  for (const ClaimReport& claim : value.claims) claims.push_back(claim_json(claim));
  json["claims"] = std::move(claims);
  return json;
}

}  // namespace

Json to_json(const lattice::Lattice& lattice, const Report& report) {
  Json knobs = Json::array();
  for (const KnobReport& knob : report.knobs) {
    const lattice::Knob& of = lattice.knobs[knob.knob];
    Json values = Json::array();
    for (const ValueReport& value : knob.values) values.push_back(value_report_json(of, value));
    knobs.push_back(Json{{"knob", of.name},
                         {"default", lattice::value_json(of.values[of.default_index])},
                         {"verdict", std::string(verdict_name(knob.verdict))},
                         {"summary", knob.summary},
                         {"values", std::move(values)}});
  }
  Json lost = Json::array();
  for (const LostVariant& variant : report.lost)
    lost.push_back(Json{{"variant", variant.name}, {"records", variant.records}, {"why", variant.why}});
  return Json{{"threshold_pct", 100 * report.options.threshold},
              {"min_races", report.options.min_races},
              {"min_regimes", report.options.min_regimes},
              {"source", report.options.source},
              {"any_source", report.options.any_source},
              {"records",
               {{"given", report.records},
                {"used", report.used},
                {"other_program", report.other_program},
                {"other_language", report.other_language},
                {"other_metric", report.other_metric},
                {"repeated", report.repeated},
                {"other_source", report.other_source},
                {"no_interval", report.no_interval},
                {"fallbacks", report.fallbacks},
                {"sources", report.sources}}},
              {"knobs", std::move(knobs)},
              {"lost", std::move(lost)},
              {"defects", report.defects},
              {"contradictions", report.contradictions}};
}

}  // namespace furlong::audit
