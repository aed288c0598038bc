#include "furlong/lattice/expression.h"

#include <algorithm>

#include "furlong/lattice/internal/tree.h"

namespace furlong::lattice {
namespace {

std::shared_ptr<const Expression::Tree> constant_tree(Value value) {
  auto tree = std::make_shared<Expression::Tree>();
  tree->text = value.text();
  tree->constants.push_back(std::move(value));
  internal::add_node(*tree, internal::Op::constant, 1, 0, {});
  return tree;
}

}  // namespace

Expression::Expression()
    : tree_([] {
        static const std::shared_ptr<const Tree> zero = constant_tree(Value(0));
        return zero;
      }()) {}

Result<Expression> Expression::parse(std::string_view text) {
  FURLONG_TRY(auto tree, internal::parse_expression(text));
  return Expression(std::move(tree));
}

Expression Expression::constant(Value value) { return Expression(constant_tree(std::move(value))); }

Result<Value> Expression::evaluate(const Lookup& lookup) const {
  std::optional<Value> current;
  return internal::evaluate(*tree_, [&](std::uint32_t variable) -> const Value* {
    current = lookup ? lookup(tree_->variables[variable]) : std::nullopt;
    return current ? &*current : nullptr;
  });
}

Result<Value> Expression::evaluate(const Environment& environment) const {
  return internal::evaluate(*tree_, [&](std::uint32_t variable) -> const Value* {
    const auto found = environment.find(tree_->variables[variable]);
    return found == environment.end() ? nullptr : &found->second;
  });
}

Result<Value> Expression::evaluate_in_order(std::span<const Value> values) const {
  return internal::evaluate(*tree_, [&](std::uint32_t variable) -> const Value* {
    return variable < values.size() ? &values[variable] : nullptr;
  });
}

const std::vector<std::string>& Expression::variables() const { return tree_->variables; }

int Expression::column_of(std::string_view variable) const {
  const auto found = std::find(tree_->variables.begin(), tree_->variables.end(), variable);
  if (found == tree_->variables.end()) return 0;
  return tree_->variable_columns[static_cast<std::size_t>(found - tree_->variables.begin())];
}

const std::string& Expression::text() const { return tree_->text; }

}  // namespace furlong::lattice
