#pragma once
// Expressions over knob values, problem parameters and device facts, with Python's meaning:
// `and or not` (returning operands, short-circuit), chained comparisons, + - * / // % ** (Python's floor
// division and modulo), the integers' << >> & | ^ ~, `in` and `not in` a list or tuple (or a word: part of
// it), conditional `a if c else b`, min max (of values or of one list) abs ceil_div int, parentheses.
// Quoted words, True and False. Names may have dots (device.sm). Integers are 64-bit; overflow is an
// error, never a wrap. The guide is docs/lattice.md.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "furlong/lattice/value.h"

namespace furlong::lattice {

/// Gives the value of a name, or nullopt when there is none.
using Lookup = std::function<std::optional<Value>(std::string_view)>;
/// Names and values, for callers that have them in a map.
using Environment = std::unordered_map<std::string, Value>;

/// A parsed expression. Immutable; copies share the tree; thread safe.
class Expression {
 public:
  /// A constant 0.
  Expression();
  /// `invalid` with "column N: what" on a syntax error. Depth and length are bounded.
  static Result<Expression> parse(std::string_view text);
  static Expression constant(Value value);

  /// `invalid` naming the column on an undefined name, a division by zero, an overflow or a type
  /// that does not fit.
  Result<Value> evaluate(const Lookup& lookup) const;
  Result<Value> evaluate(const Environment& environment) const;
  /// The quick form for loops: one value a name, in the order of variables().
  Result<Value> evaluate_in_order(std::span<const Value> values) const;
  /// Names in order of first appearance, each once.
  const std::vector<std::string>& variables() const;
  /// Column (1-based) at which a name first appears; 0 when it does not.
  int column_of(std::string_view variable) const;
  /// The text that was parsed.
  const std::string& text() const;

  struct Tree;
  const std::shared_ptr<const Tree>& tree() const { return tree_; }

 private:
  explicit Expression(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const Tree> tree_;
};

}  // namespace furlong::lattice
