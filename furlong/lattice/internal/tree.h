#pragma once
// The tree behind an Expression: nodes in a vector, children before parents, the root last.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "furlong/lattice/expression.h"
#include "furlong/lattice/internal/arithmetic.h"

namespace furlong::lattice {

namespace internal {

enum class Op : std::uint8_t {
  constant,     ///< payload: index into constants
  name,         ///< payload: index into variables
  any_of,       ///< or: the first true operand, else the last
  all_of,       ///< and: the first false operand, else the last
  negation,     ///< not
  comparison,   ///< chain; payload: index of its first comparator
  conditional,  ///< children: value, condition, other value (the order of the text)
  unary,        ///< payload: Unary
  binary,       ///< payload: Binary
  minimum,
  maximum,
  ceil_div,
  list,  ///< right operand of in, or the only argument of min and max
};

enum class Comparator : std::uint8_t {
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  in,
  not_in
};

struct Node {
  Op op = Op::constant;
  int column = 1;  ///< 1-based, of the operator or the operand
  std::uint32_t payload = 0;
  std::uint32_t first_child = 0;  ///< into Tree::children
  std::uint32_t child_count = 0;
  std::uint16_t depth = 1;
};

}  // namespace internal

struct Expression::Tree {
  std::string text;
  std::vector<internal::Node> nodes;
  std::vector<std::uint32_t> children;
  std::vector<internal::Comparator> comparators;
  std::vector<Value> constants;
  std::vector<std::string> variables;
  std::vector<int> variable_columns;

  std::uint32_t root() const { return static_cast<std::uint32_t>(nodes.size() - 1); }
  std::span<const std::uint32_t> children_of(const internal::Node& node) const {
    return {children.data() + node.first_child, node.child_count};
  }
};

namespace internal {

/// Gives the value of the variable with this index, or null when there is none. The value must live
/// until the next call.
using Slots = std::function<const Value*(std::uint32_t variable)>;

Result<std::shared_ptr<const Expression::Tree>> parse_expression(std::string_view text);
Result<Value> evaluate(const Expression::Tree& tree, const Slots& slots);

/// Adds a node after its children; the tree's last node is its root.
std::uint32_t add_node(Expression::Tree& tree, Op op, int column, std::uint32_t payload,
                       std::span<const std::uint32_t> children);

}  // namespace internal
}  // namespace furlong::lattice
