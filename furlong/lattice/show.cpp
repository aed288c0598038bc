// The map of a lattice that people read, and its JSON.

#include "furlong/base/json.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/lattice/internal/show_words.h"
#include "furlong/lattice/lint.h"
#include "furlong/lattice/value_json.h"

namespace furlong::lattice {
namespace {

std::string tag_of(const Knob& knob, std::size_t v) { return v < knob.tags.size() ? knob.tags[v] : ""; }

/// "1, 2 (u2), bf16 (b16, lossy)".
std::string values_of(const Knob& knob) {
  std::vector<std::string> parts;
  for (std::size_t v = 0; v < knob.values.size(); ++v) {
    const auto notes = internal::value_notes(knob, v);
    parts.push_back(knob.values[v].text() + (notes.empty() ? "" : " (" + join(notes, ", ") + ")"));
  }
  return join(parts, ", ");
}

Json claims_json(const Knob& knob) {
  Json claims = Json::array();
  for (const Claim& claim : knob.claims) {
    Json entry;
    entry["value"] = claim.value < knob.values.size() ? value_json(knob.values[claim.value]) : Json();
    entry["outcome"] = std::string(claim_outcome_name(claim.outcome));
    entry["where"] = claim.where;
    claims.push_back(std::move(entry));
  }
  return claims;
}

Json json_of(const Knob& knob) {
  Json values = Json::array();
  for (std::size_t v = 0; v < knob.values.size(); ++v) {
    Json entry;
    entry["value"] = value_json(knob.values[v]);
    entry["tag"] = tag_of(knob, v);
    entry["lossy"] = knob.lossy.contains(v);
    entry["restricted"] = knob.restricted.contains(v);
    if (const auto option = knob.options.find(v); option != knob.options.end())
      entry["option"] = option->second;
    values.push_back(std::move(entry));
  }
  Json applies = Json::array();
  for (const auto how : knob.applies) applies.push_back(std::string(applies_name(how)));
  Json json;
  json["name"] = knob.name;
  json["default"] =
      knob.default_index < knob.values.size() ? value_json(knob.values[knob.default_index]) : Json();
  json["values"] = std::move(values);
  json["applies"] = std::move(applies);
  json["wins"] = knob.wins;
  json["loses"] = knob.loses;
  json["evidence"] = knob.evidence;
  json["claims"] = claims_json(knob);
  json["requires"] = knob.requires_text;
  json["languages"] = knob.languages;
  json["coupled"] = knob.coupled;
  return json;
}

}  // namespace

std::string internal::default_text(const Knob& knob) {
  return knob.default_index < knob.values.size() ? knob.values[knob.default_index].text() : "";
}

std::vector<std::string> internal::value_notes(const Knob& knob, std::size_t value) {
  std::vector<std::string> notes;
  if (!tag_of(knob, value).empty()) notes.push_back(tag_of(knob, value));
  if (knob.lossy.contains(value)) notes.emplace_back("lossy");
  if (knob.restricted.contains(value)) notes.emplace_back("by name only");
  return notes;
}

std::string show_text(const Lattice& lattice) {
  Table table;
  for (const char* heading : {"knob", "default", "values", "wins", "loses", "evidence", "requires"})
    table.column(heading);
  for (const auto& knob : lattice.knobs)
    table.row({knob.name, internal::default_text(knob), values_of(knob), knob.wins, knob.loses, knob.evidence,
               knob.requires_text});
  std::string text = table.text();
  if (!lattice.constraints.empty()) text += "\nConstraints\n";
  for (const auto& constraint : lattice.constraints) {
    text += "  " + constraint.expression.text();
    if (!constraint.reason.empty()) text += "  (" + constraint.reason + ")";
    text += "\n";
  }
  if (!lattice.strictly_better.empty()) text += "\nStrictly better: always applied\n";
  for (const auto& entry : lattice.strictly_better) text += "  " + entry.name + ": " + entry.reason + "\n";
  if (!lattice.catalogue.empty()) text += "\nCatalogue: " + join(lattice.catalogue, " ") + "\n";
  return text;
}

Json show_json(const Lattice& lattice) {
  Json knobs = Json::array();
  for (const auto& knob : lattice.knobs) knobs.push_back(json_of(knob));
  Json constraints = Json::array();
  for (const auto& constraint : lattice.constraints) {
    Json entry;
    entry["expression"] = constraint.expression.text();
    entry["reason"] = constraint.reason;
    constraints.push_back(std::move(entry));
  }
  Json better = Json::array();
  for (const auto& item : lattice.strictly_better) {
    Json entry;
    entry["name"] = item.name;
    entry["reason"] = item.reason;
    better.push_back(std::move(entry));
  }
  Json json;
  json["knobs"] = std::move(knobs);
  json["constraints"] = std::move(constraints);
  json["strictly_better"] = std::move(better);
  json["catalogue"] = lattice.catalogue;
  return json;
}

}  // namespace furlong::lattice
