#include "furlong/lattice/internal/conditions.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::lattice::internal {
namespace {

std::string at_line(int line) { return line > 0 ? fmt::format("line {}: ", line) : ""; }

/// knob == default or (the precondition); the precondition keeps its nodes, so its columns stay right.
std::shared_ptr<const Expression::Tree> guarded(const Expression::Tree& precondition, const Knob& knob) {
  auto tree = std::make_shared<Expression::Tree>(precondition);
  const std::uint32_t root = tree->root();
  const auto found = std::find(tree->variables.begin(), tree->variables.end(), knob.name);
  const auto variable = static_cast<std::uint32_t>(found - tree->variables.begin());
  if (found == tree->variables.end()) {
    tree->variables.push_back(knob.name);
    tree->variable_columns.push_back(1);
  }
  tree->constants.push_back(knob.values[knob.default_index]);
  const std::uint32_t name = add_node(*tree, Op::name, 1, variable, {});
  const std::uint32_t value =
      add_node(*tree, Op::constant, 1, static_cast<std::uint32_t>(tree->constants.size() - 1), {});
  const auto comparator = static_cast<std::uint32_t>(tree->comparators.size());
  tree->comparators.push_back(Comparator::equal);
  const std::uint32_t at_default = add_node(*tree, Op::comparison, 1, comparator, std::vector{name, value});
  add_node(*tree, Op::any_of, 1, 0, std::vector{at_default, root});
  return tree;
}

}  // namespace

Condition condition_of(const Constraint& constraint) {
  return {constraint.expression.tree(),
          fmt::format("{}constraint '{}'", at_line(constraint.line), constraint.expression.text()),
          constraint.reason, nullptr};
}

Result<std::optional<Condition>> condition_of(const Knob& knob) {
  if (trim(knob.requires_text).empty() || knob.default_index >= knob.values.size())
    return std::optional<Condition>();
  const std::string name =
      fmt::format("{}knob '{}' requires '{}'", at_line(knob.line), knob.name, knob.requires_text);
  auto parsed = Expression::parse(knob.requires_text);
  if (!parsed) return fail(Code::invalid, "{}: {}", name, parsed.error().message());
  return std::optional(Condition{guarded(*parsed->tree(), knob), name, "", &knob});
}

Result<std::vector<Condition>> conditions(const Lattice& lattice) {
  std::vector<Condition> all;
  for (const auto& constraint : lattice.constraints) all.push_back(condition_of(constraint));
  for (const auto& knob : lattice.knobs) {
    FURLONG_TRY(auto condition, condition_of(knob));
    if (condition) all.push_back(std::move(*condition));
  }
  return all;
}

}  // namespace furlong::lattice::internal
