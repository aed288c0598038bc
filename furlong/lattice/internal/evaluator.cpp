// Evaluation of a tree by Python's rules: operands left to right, only those that are needed.

#include "furlong/lattice/internal/tree.h"

namespace furlong::lattice::internal {
namespace {

std::string_view kind_name(const Value& value) {
  if (value.is_word()) return "a word";
  if (value.is_float()) return "a float";
  return value.is_bool() ? "a boolean" : "an integer";
}

std::string describe(Fault fault, std::string_view operation, const Value& a, const Value* b) {
  switch (fault) {
    case Fault::overflow:
      return fmt::format("overflow: the result of '{}' is too large", operation);
    case Fault::zero_division:
      return fmt::format("division by zero in '{}'", operation);
    case Fault::complex:
      return "a negative number to a fractional power is no real number";
    case Fault::shift:
      return fmt::format("'{}' by a negative number", operation);
    case Fault::not_finite:
      return "int() of a number that is not finite";
    case Fault::empty:
      return fmt::format("{}() of an empty list", operation);
    case Fault::type:
    case Fault::none:
      break;
  }
  if (b == nullptr) return fmt::format("'{}' does not fit {}", operation, kind_name(a));
  return fmt::format("'{}' does not fit {} and {}", operation, kind_name(a), kind_name(*b));
}

class Evaluator {
 public:
  Evaluator(const Expression::Tree& tree, const Slots& slots) : tree_(tree), slots_(slots) {}

  Result<Value> value(std::uint32_t id) const {
    const Node& node = tree_.nodes[id];
    switch (node.op) {
      case Op::constant:
        return tree_.constants[node.payload];
      case Op::name:
        return name(node);
      case Op::any_of:
        return joined(node, true);
      case Op::all_of:
        return joined(node, false);
      case Op::negation: {
        FURLONG_TRY(const Value operand, value(child(node, 0)));
        return Value(!operand.truthy());
      }
      case Op::comparison:
        return comparison(node);
      case Op::conditional: {
        FURLONG_TRY(const Value condition, value(child(node, 1)));
        return value(child(node, condition.truthy() ? 0 : 2));
      }
      case Op::unary:
        return unary(node);
      case Op::binary:
        return binary(node);
      case Op::minimum:
        return extreme(node, Order::less, "min");
      case Op::maximum:
        return extreme(node, Order::greater, "max");
      case Op::ceil_div: {
        FURLONG_TRY(const Value a, value(child(node, 0)));
        FURLONG_TRY(const Value b, value(child(node, 1)));
        Value result;
        const Fault fault = internal::ceil_div(a, b, result);
        if (fault != Fault::none) return error(node, describe(fault, "ceil_div", a, &b));
        return result;
      }
      case Op::list:
        break;
    }
    return error(node, "a list is no value");
  }

 private:
  std::uint32_t child(const Node& node, std::size_t i) const { return tree_.children[node.first_child + i]; }

  static Error error(const Node& node, std::string_view what) {
    return fail(Code::invalid, "column {}: {}", node.column, what);
  }

  Result<Value> name(const Node& node) const {
    const Value* found = slots_(node.payload);
    if (found == nullptr)
      return error(node, fmt::format("'{}' is not defined", tree_.variables[node.payload]));
    return *found;
  }

  /// or: the first true operand; and: the first false one; else the last.
  Result<Value> joined(const Node& node, bool stop_at) const {
    for (std::size_t i = 0; i + 1 < node.child_count; ++i) {
      FURLONG_TRY(Value operand, value(child(node, i)));
      if (operand.truthy() == stop_at) return operand;
    }
    return value(child(node, node.child_count - 1));
  }

  Result<Value> unary(const Node& node) const {
    FURLONG_TRY(const Value operand, value(child(node, 0)));
    const auto op = static_cast<Unary>(node.payload);
    Value result;
    const Fault fault = apply(op, operand, result);
    if (fault != Fault::none) return error(node, describe(fault, symbol(op), operand, nullptr));
    return result;
  }

  Result<Value> binary(const Node& node) const {
    FURLONG_TRY(const Value a, value(child(node, 0)));
    FURLONG_TRY(const Value b, value(child(node, 1)));
    const auto op = static_cast<Binary>(node.payload);
    Value result;
    const Fault fault = apply(op, a, b, result);
    if (fault != Fault::none) return error(node, describe(fault, symbol(op), a, &b));
    return result;
  }

  Result<Value> comparison(const Node& node) const {
    FURLONG_TRY(Value left, value(child(node, 0)));
    for (std::size_t i = 1; i < node.child_count; ++i) {
      const Comparator comparator = tree_.comparators[node.payload + i - 1];
      bool holds = false;
      if (comparator >= Comparator::in) {
        FURLONG_TRY(holds, contains(node, left, child(node, i)));
        if (comparator == Comparator::not_in) holds = !holds;
      } else {
        FURLONG_TRY(Value right, value(child(node, i)));
        const auto order = static_cast<Order>(comparator);
        const Fault fault = compare(order, left, right, holds);
        if (fault != Fault::none) return error(node, describe(fault, symbol(order), left, &right));
        left = std::move(right);
      }
      if (!holds) return Value(false);
    }
    return Value(true);
  }

  /// Whether `item` is in the operand `where`. The next comparison of a chain is with that operand, so a word
  /// takes the item's place; a list, which can only stand last, does not.
  Result<bool> contains(const Node& node, Value& item, std::uint32_t where) const {
    const Node& list = tree_.nodes[where];
    if (list.op != Op::list) {
      FURLONG_TRY(Value word, value(where));
      if (!word.is_word() || !item.is_word()) return error(node, describe(Fault::type, "in", item, &word));
      const bool found = word.word()->find(*item.word()) != std::string::npos;
      item = std::move(word);
      return found;
    }
    bool found = false;
    for (const auto element : tree_.children_of(list)) {  // all, because any of them may fail
      FURLONG_TRY(const Value candidate, value(element));
      found = found || candidate == item;
    }
    return found;
  }

  Result<Value> extreme(const Node& node, Order better, std::string_view name_of) const {
    auto operands = tree_.children_of(node);
    if (operands.size() == 1) operands = tree_.children_of(tree_.nodes[operands[0]]);
    std::vector<Value> values;  // all first: min(1, 1 // 0) fails however small 1 is
    for (const auto operand : operands) {
      FURLONG_TRY(Value candidate, value(operand));
      values.push_back(std::move(candidate));
    }
    if (values.empty()) return error(node, describe(Fault::empty, name_of, Value(), nullptr));
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      bool holds = false;
      const Fault fault = compare(better, values[i], values[best], holds);
      if (fault != Fault::none) return error(node, describe(fault, name_of, values[best], &values[i]));
      if (holds) best = i;
    }
    return std::move(values[best]);
  }

  const Expression::Tree& tree_;
  const Slots& slots_;
};

}  // namespace

Result<Value> evaluate(const Expression::Tree& tree, const Slots& slots) {
  return Evaluator(tree, slots).value(tree.root());
}

}  // namespace furlong::lattice::internal
