// The shapes of docs/formats/hub-api.md.

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/numbers.h"

namespace furlong::fleet {
namespace {

using internal::rounded;

void put(Json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = rounded(value);
}

void put_interval(Json& object, const std::optional<record::Interval>& interval) {
  if (interval && std::isfinite(interval->lo) && std::isfinite(interval->hi))
    object["ci"] = Json::array({rounded(interval->lo), rounded(interval->hi)});
}

void put_gain(Json& object, const Estimate& gain) {
  put(object, "gain_pct", gain.median);
  put_interval(object, gain.ci);
}

void put_counts(Json& object, const Estimate& estimate) {
  object["samples"] = estimate.samples;
  object["machines"] = estimate.machines;
}

/// By what they are keyed: drivers or days.
Json slices(const std::map<std::string, Estimate>& estimates, const char* key) {
  Json array = Json::array();
  for (const auto& [name, gain] : estimates) {
    Json object = Json::object();
    object[key] = name;
    put_gain(object, gain);
    put_counts(object, gain);
    array.push_back(std::move(object));
  }
  return array;
}

Json variant_json(const VariantEvidence& variant) {
  Json object = Json::object();
  object["name"] = variant.name;
  put_gain(object, variant.gain_pct);
  if (variant.gain_pct.samples > 0) put(object, "standing_pct", variant.standing_pct);
  put(object, "rate", variant.rate.median);
  put(object, "rate_per_w", variant.rate_per_w.median);
  object["samples"] = variant.gain_pct.samples;
  object["races"] = variant.gain_pct.races;
  object["machines"] = variant.gain_pct.machines;
  object["won"] = variant.won;
  object["exits"] = Json::object();
  for (const auto& [exit, races] : variant.exits) object["exits"][exit] = races;
  object["strata"] = Json::array();
  for (const Stratum& stratum : variant.strata) {
    Json one = Json::object();
    one["power"] = stratum.name;
    put_gain(one, stratum.gain);
    one["machines"] = stratum.gain.machines;
    object["strata"].push_back(std::move(one));
  }
  object["drivers"] = slices(variant.drivers, "driver");
  object["days"] = slices(variant.days, "day");
  return object;
}

void put_subject(Json& object, const Subject& subject) {
  object["program"] = subject.program;
  object["class"] = json_parse(subject.program_class, "class").value_or(Json::object());
  object["backend"] = subject.backend;
}

void put_winner(Json& object, const RowEvidence& row) {
  const auto find = [&](std::string_view name) {
    return std::ranges::find(row.variants, name, &VariantEvidence::name);
  };
  const auto winner = find(row.variant), base = find("base"), none = row.variants.end();
  if (winner != none) put(object, "rate", winner->rate.median);
  if (base != none) put(object, "base_rate", base->rate.median);
  if (winner == none) return;
  put(object, "rate_per_w", winner->rate_per_w.median);
  put_gain(object, winner->gain_pct);
}

Json row_json(const RowEvidence& row, bool all) {
  Json object = Json::object();
  put_subject(object, row.subject);
  object["metric"] = row.subject.metric;
  object["unit"] = row.subject.unit;
  object["variant"] = row.variant;
  object["choice"] = choice_name(row.choice);
  object["leads"] = row.leads;
  if (all) object["why"] = row.why;
  object["candidates"] = row.candidates;
  object["samples"] = row.samples;
  object["races"] = row.races;
  object["machines"] = row.machines;
  if (row.newest_us > 0) object["newest"] = iso_time(row.newest_us);
  put_winner(object, row);
  if (!all) return object;
  object["variants"] = Json::array();
  for (const VariantEvidence& variant : row.variants) object["variants"].push_back(variant_json(variant));
  object["set_aside"] = Json::array();
  for (const SetAside& one : row.set_aside)
    object["set_aside"].push_back(
        {{"machine", one.machine}, {"reason", one.reason}, {"why", one.why}, {"races", one.races}});
  return object;
}

Json card_json(const CardEvidence& card, bool all) {
  Json object = Json::object();
  object["key"] = card.key;
  object["label"] = card.label;
  object["aliases"] = card.aliases;
  object["silicon"] = record::silicon_to_json(card.silicon);
  object["rows"] = Json::array();
  for (const RowEvidence& row : card.rows) object["rows"].push_back(row_json(row, all));
  return object;
}

Json window_json(const Window& window) {
  return Json{{"from", iso_time(window.from_us)}, {"to", iso_time(window.to_us)}};
}

Json regression_json(const Regression& one) {
  Json object = Json::object();
  object["card"] = one.card;
  object["silicon"] = one.silicon;
  put_subject(object, one.subject);
  object["driver"] = one.driver;
  object["driver_before"] = one.driver_before;
  object["variant"] = one.variant;
  put(object, "before", one.before);
  put(object, "after", one.after);
  object["unit"] = one.subject.unit;
  put(object, "change_pct", one.change_pct.median);
  put_interval(object, one.change_pct.ci);
  object["machines"] = one.change_pct.machines;
  object["samples"] = one.change_pct.samples;
  object["all_variants"] = one.all_variants;
  return object;
}

}  // namespace

Json to_json(const CardEvidence& card) { return card_json(card, true); }

Json to_json(const Aggregate& aggregate) {
  Json object = Json::object();
  object["schema"] = 1;
  if (aggregate.updated_us > 0) object["updated"] = iso_time(aggregate.updated_us);
  object["window_days"] = aggregate.options.window_days;
  object["races"] = aggregate.races;
  object["cards"] = Json::array();
  for (const CardEvidence& card : aggregate.cards) object["cards"].push_back(card_json(card, false));
  return object;
}

Json to_json(const Regressions& regressions) {
  Json object = Json::object();
  object["schema"] = 1;
  object["before"] = window_json(regressions.before);
  object["after"] = window_json(regressions.after);
  object["compared"] = regressions.compared;
  object["regressions"] = Json::array();
  for (const Regression& one : regressions.regressions) object["regressions"].push_back(regression_json(one));
  return object;
}

}  // namespace furlong::fleet
