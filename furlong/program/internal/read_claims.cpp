// claims = [...] of a [[knob]]: what of its sentences race records can contradict.
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/internal/draft.h"

namespace furlong::program::internal {
namespace {

/// A claim is judged by race records alone, so it may name only what they tell: the class and some facts.
Status check_condition(const Draft& draft, const PlacedExpression& placed) {
  std::vector<std::string> known;
  if (const TomlNode* features = draft.root.find("class"); features != nullptr && features->is_table())
    for (const auto& [name, unused] : *features->table()) known.push_back(name);
  for (const std::string& fact : lattice::claim_facts()) known.push_back(fact);
  for (const std::string& name : placed.expression.variables()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return draft.reader.error(
        draft.reader.inside(*placed.node, placed.expression.column_of(name)),
        "{}: '{}' is neither a feature in [class] nor a device fact that race records tell{}", placed.what,
        name, Reader::choices(name, known));
  }
  return {};
}

}  // namespace

Status read_claims(const Draft& draft, const TomlNode& table, lattice::Knob& knob) {
  static const std::vector<std::string> outcomes = {"wins", "loses", "ties"};
  const TomlNode* node = table.find("claims");
  if (node == nullptr) return {};
  const Reader& in = draft.reader;
  const std::string what = fmt::format("a claim of knob '{}'", knob.name);
  FURLONG_TRY(const TomlNode::Array* items, in.array(*node, fmt::format("claims of knob '{}'", knob.name)));
  for (const TomlNode& item : *items) {
    FURLONG_CHECK(in.expect_table(item, what));
    FURLONG_CHECK(in.check_keys(item, what, {"value", "outcome", "where"}));
    lattice::Claim claim;
    claim.line = item.line;
    FURLONG_TRY(const TomlNode* value, in.required(item, what, "value"));
    FURLONG_TRY(const lattice::Value named, in.value(*value, what, false));
    const auto at = std::ranges::find(knob.values, named);
    if (at == knob.values.end())
      return in.error(*value, "{}: {} is none of the knob's values", what, named.text());
    claim.value = static_cast<std::size_t>(at - knob.values.begin());
    if (claim.value == knob.default_index)
      return in.error(*value, "{}: {} is the default, which the others are compared with", what,
                      named.text());
    FURLONG_TRY(const TomlNode* outcome, in.required(item, what, "outcome"));
    FURLONG_TRY(const std::size_t word, in.one_of(*outcome, fmt::format("outcome of {}", what), outcomes));
    claim.outcome = static_cast<lattice::ClaimOutcome>(word);
    if (const TomlNode* where = item.find("where")) {
      FURLONG_TRY(const PlacedExpression placed, in.expression(*where, fmt::format("where of {}", what)));
      FURLONG_CHECK(check_condition(draft, placed));
      claim.where = placed.expression.text();
    }
    knob.claims.push_back(std::move(claim));
  }
  return {};
}

}  // namespace furlong::program::internal
