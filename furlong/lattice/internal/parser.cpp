// Recursive descent over Python's expression grammar, bounded in length and depth.

#include <algorithm>

#include "furlong/lattice/internal/tokens.h"
#include "furlong/lattice/internal/tree.h"

namespace furlong::lattice::internal {
namespace {

constexpr std::size_t kLongestText = 65536;
constexpr int kDeepestNesting = 100;         // parentheses and prefix operators, which recurse here
constexpr std::uint16_t kDeepestTree = 400;  // what evaluation recurses through

using Id = std::uint32_t;
using Kind = Token::Kind;

struct BinaryLevel {
  std::vector<std::pair<std::string_view, Binary>> operators;
};

/// Loosest first; all left-associative. ** stands apart.
const std::vector<BinaryLevel>& binary_levels() {
  static const std::vector<BinaryLevel> levels = {
      {{{"|", Binary::bit_or}}},
      {{{"^", Binary::bit_xor}}},
      {{{"&", Binary::bit_and}}},
      {{{"<<", Binary::shl}, {">>", Binary::shr}}},
      {{{"+", Binary::add}, {"-", Binary::sub}}},
      {{{"*", Binary::mul}, {"/", Binary::div}, {"//", Binary::floor_div}, {"%", Binary::mod}}}};
  return levels;
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    tree_->text = std::string(text);
  }

  Result<std::shared_ptr<const Expression::Tree>> run() {
    FURLONG_TRY(const Id root, expression());
    if (token().kind != Kind::end) return unexpected("the end of the expression or an operator");
    FURLONG_CHECK(check_lists(root));
    return std::shared_ptr<const Expression::Tree>(tree_);
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  bool is(Kind kind, std::string_view text) const { return token().kind == kind && token().text == text; }
  bool accept(Kind kind, std::string_view text) {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }

  Error unexpected(std::string_view wanted) const {
    const Token& t = token();
    if (t.kind == Kind::end)
      return fail(Code::invalid, "column {}: the expression ends where {} should stand", t.column, wanted);
    const std::string shown = t.kind == Kind::number || t.kind == Kind::word ? t.value.text() : t.text;
    return fail(Code::invalid, "column {}: '{}' stands where {} should stand", t.column, shown, wanted);
  }

  Result<Id> add(Op op, int column, std::uint32_t payload, std::span<const Id> children) {
    const Id id = add_node(*tree_, op, column, payload, children);
    if (tree_->nodes[id].depth > kDeepestTree)
      return fail(Code::invalid, "column {}: the expression is nested or chained more than {} levels deep",
                  column, kDeepestTree);
    return id;
  }

  Result<Id> expression() {
    if (++nesting_ > kDeepestNesting)
      return fail(Code::invalid, "column {}: more than {} levels of nesting", token().column,
                  kDeepestNesting);
    FURLONG_TRY(Id value, any_of());
    if (is(Kind::keyword, "if")) {
      const int column = token().column;
      ++at_;
      FURLONG_TRY(const Id condition, any_of());
      if (!accept(Kind::keyword, "else")) return unexpected("else");
      FURLONG_TRY(const Id other, expression());
      FURLONG_TRY(value, add(Op::conditional, column, 0, std::vector<Id>{value, condition, other}));
    }
    --nesting_;
    return value;
  }

  Result<Id> any_of() { return joined("or", Op::any_of, &Parser::all_of); }
  Result<Id> all_of() { return joined("and", Op::all_of, &Parser::negation); }

  Result<Id> joined(std::string_view keyword, Op op, Result<Id> (Parser::*operand)()) {
    FURLONG_TRY(const Id first, (this->*operand)());
    if (!is(Kind::keyword, keyword)) return first;
    const int column = token().column;
    std::vector<Id> operands{first};
    while (accept(Kind::keyword, keyword)) {
      FURLONG_TRY(const Id next, (this->*operand)());
      operands.push_back(next);
    }
    return add(op, column, 0, operands);
  }

  Result<Id> negation() {
    if (!is(Kind::keyword, "not")) return comparison();
    const int column = token().column;
    ++at_;
    if (++nesting_ > kDeepestNesting)
      return fail(Code::invalid, "column {}: more than {} levels of nesting", column, kDeepestNesting);
    FURLONG_TRY(const Id operand, negation());
    --nesting_;
    return add(Op::negation, column, 0, std::vector<Id>{operand});
  }

  std::optional<Comparator> comparator() {
    static const std::vector<std::pair<std::string_view, Comparator>> symbols = {
        {"<", Comparator::less},           {"<=", Comparator::less_equal}, {">", Comparator::greater},
        {">=", Comparator::greater_equal}, {"==", Comparator::equal},      {"!=", Comparator::not_equal}};
    for (const auto& [text, value] : symbols)
      if (accept(Kind::symbol, text)) return value;
    if (accept(Kind::keyword, "in")) return Comparator::in;
    if (is(Kind::keyword, "not") && tokens_[at_ + 1].kind == Kind::keyword && tokens_[at_ + 1].text == "in") {
      at_ += 2;
      return Comparator::not_in;
    }
    return std::nullopt;
  }

  Result<Id> comparison() {
    FURLONG_TRY(const Id first, binary(0));
    std::vector<Id> operands{first};
    std::vector<Comparator> comparators;
    int column = token().column;
    while (true) {
      const int here = token().column;
      const auto next = comparator();
      if (!next) break;
      if (comparators.empty()) column = here;
      comparators.push_back(*next);
      FURLONG_TRY(const Id operand, binary(0));
      operands.push_back(operand);
    }
    if (comparators.empty()) return first;
    const auto start = static_cast<std::uint32_t>(tree_->comparators.size());
    tree_->comparators.insert(tree_->comparators.end(), comparators.begin(), comparators.end());
    return add(Op::comparison, column, start, operands);
  }

  Result<Id> binary(std::size_t level) {
    if (level == binary_levels().size()) return factor();
    FURLONG_TRY(Id left, binary(level + 1));
    while (token().kind == Kind::symbol) {
      const auto& operators = binary_levels()[level].operators;
      const auto found = std::find_if(operators.begin(), operators.end(), [this](const auto& candidate) {
        return candidate.first == token().text;
      });
      if (found == operators.end()) break;
      const int column = token().column;
      ++at_;
      FURLONG_TRY(const Id right, binary(level + 1));
      FURLONG_TRY(left, add(Op::binary, column, static_cast<std::uint32_t>(found->second),
                            std::vector<Id>{left, right}));
    }
    return left;
  }

  Result<Id> factor() {
    const Token& t = token();
    const bool prefix = t.kind == Kind::symbol && (t.text == "-" || t.text == "+" || t.text == "~");
    if (!prefix) return power();
    const int column = t.column;
    const Unary op = t.text == "-" ? Unary::neg : t.text == "+" ? Unary::pos : Unary::invert;
    ++at_;
    if (op == Unary::neg && token().lowest_magnitude && !is_power_next()) {
      ++at_;
      return constant(Value(std::numeric_limits<std::int64_t>::min()), column);
    }
    if (++nesting_ > kDeepestNesting)
      return fail(Code::invalid, "column {}: more than {} levels of nesting", column, kDeepestNesting);
    FURLONG_TRY(const Id operand, factor());
    --nesting_;
    return add(Op::unary, column, static_cast<std::uint32_t>(op), std::vector<Id>{operand});
  }

  bool is_power_next() const {
    return tokens_[at_ + 1].kind == Kind::symbol && tokens_[at_ + 1].text == "**";
  }

  Result<Id> power() {
    FURLONG_TRY(const Id base, atom());
    if (!is(Kind::symbol, "**")) return base;
    const int column = token().column;
    ++at_;
    if (++nesting_ > kDeepestNesting)
      return fail(Code::invalid, "column {}: more than {} levels of nesting", column, kDeepestNesting);
    FURLONG_TRY(const Id exponent, factor());
    --nesting_;
    return add(Op::binary, column, static_cast<std::uint32_t>(Binary::pow), std::vector<Id>{base, exponent});
  }

  Result<Id> constant(Value value, int column) {
    tree_->constants.push_back(std::move(value));
    return add(Op::constant, column, static_cast<std::uint32_t>(tree_->constants.size() - 1), {});
  }

  Result<Id> atom() {
    const Token t = token();
    if (t.lowest_magnitude)
      return fail(Code::invalid, "column {}: overflow: 9223372036854775808 does not fit 64 bits", t.column);
    if (t.kind == Kind::number || t.kind == Kind::word) {
      ++at_;
      return constant(t.value, t.column);
    }
    if (t.kind == Kind::keyword && (t.text == "True" || t.text == "False")) {
      ++at_;
      return constant(Value(t.text == "True"), t.column);
    }
    if (t.kind == Kind::keyword && t.text == "None")
      return fail(Code::invalid, "column {}: None is no value here", t.column);
    if (t.kind == Kind::name) {
      ++at_;
      return is(Kind::symbol, "(") ? call(t) : name(t);
    }
    if (accept(Kind::symbol, "(")) return parenthesis(t.column, ")");
    if (accept(Kind::symbol, "[")) return parenthesis(t.column, "]");
    return unexpected("a value");
  }

  Result<Id> name(const Token& t) {
    auto& variables = tree_->variables;
    const auto found = std::find(variables.begin(), variables.end(), t.text);
    const auto index = static_cast<std::uint32_t>(found - variables.begin());
    if (found == variables.end()) {
      variables.push_back(t.text);
      tree_->variable_columns.push_back(t.column);
    }
    return add(Op::name, t.column, index, {});
  }

  /// After the opening bracket. Round brackets around one value without a comma are no list.
  Result<Id> parenthesis(int column, std::string_view close) {
    if (accept(Kind::symbol, close)) return add(Op::list, column, 0, {});
    FURLONG_TRY(const Id first, expression());
    if (close == ")" && accept(Kind::symbol, close)) return first;
    std::vector<Id> items{first};
    if (accept(Kind::symbol, ",")) {
      FURLONG_CHECK(more_items(items, close));
    } else if (!accept(Kind::symbol, close)) {
      return unexpected(close == ")" ? "')' or ','" : "']' or ','");
    }
    return add(Op::list, column, 0, items);
  }

  /// After a comma: further items with the closing bracket, a trailing comma allowed.
  Status more_items(std::vector<Id>& items, std::string_view close) {
    while (!accept(Kind::symbol, close)) {
      FURLONG_TRY(const Id item, expression());
      items.push_back(item);
      if (accept(Kind::symbol, ",")) continue;
      if (!is(Kind::symbol, close)) return unexpected(close == ")" ? "')' or ','" : "']' or ','");
    }
    return {};
  }

  Result<Id> call(const Token& function) {
    const int column = function.column;
    ++at_;  // the bracket
    std::vector<Id> arguments;
    FURLONG_CHECK(more_items(arguments, ")"));
    const auto arity = [&](std::size_t wanted) -> Status {
      if (arguments.size() == wanted) return {};
      return fail(Code::invalid, "column {}: {}() takes {} value{}, {} given", column, function.text, wanted,
                  wanted == 1 ? "" : "s", arguments.size());
    };
    if (function.text == "min" || function.text == "max") {
      if (arguments.empty() || (arguments.size() == 1 && tree_->nodes[arguments[0]].op != Op::list))
        return fail(Code::invalid, "column {}: {}() takes a list or at least two values", column,
                    function.text);
      return add(function.text == "min" ? Op::minimum : Op::maximum, column, 0, arguments);
    }
    if (function.text == "abs" || function.text == "int") {
      FURLONG_CHECK(arity(1));
      const Unary op = function.text == "abs" ? Unary::abs : Unary::to_int;
      return add(Op::unary, column, static_cast<std::uint32_t>(op), arguments);
    }
    if (function.text == "ceil_div") {
      FURLONG_CHECK(arity(2));
      return add(Op::ceil_div, column, 0, arguments);
    }
    return fail(Code::invalid, "column {}: no function {}(); there are min, max, abs, ceil_div and int",
                column, function.text);
  }

  /// A list is only what `in` looks into and what min and max take.
  Status check_lists(Id root) const {
    const auto misplaced = [this](Id id) -> Status {
      if (tree_->nodes[id].op != Op::list) return {};
      return fail(Code::invalid, "column {}: a list may stand only behind 'in' or in min() and max()",
                  tree_->nodes[id].column);
    };
    FURLONG_CHECK(misplaced(root));
    for (const Node& node : tree_->nodes) {
      const auto children = tree_->children_of(node);
      for (std::size_t i = 0; i < children.size(); ++i) {
        const bool alone_in_extreme =
            (node.op == Op::minimum || node.op == Op::maximum) && children.size() == 1;
        const bool looked_into = node.op == Op::comparison && i + 1 == children.size() &&
                                 tree_->comparators[node.payload + i - 1] >= Comparator::in;
        if (!alone_in_extreme && !looked_into) FURLONG_CHECK(misplaced(children[i]));
      }
    }
    return {};
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::shared_ptr<Expression::Tree> tree_ = std::make_shared<Expression::Tree>();
};

}  // namespace

std::uint32_t add_node(Expression::Tree& tree, Op op, int column, std::uint32_t payload,
                       std::span<const std::uint32_t> children) {
  Node node;
  node.op = op;
  node.column = column;
  node.payload = payload;
  node.first_child = static_cast<std::uint32_t>(tree.children.size());
  node.child_count = static_cast<std::uint32_t>(children.size());
  for (const auto child : children) {
    tree.children.push_back(child);
    node.depth = std::max<std::uint16_t>(node.depth, static_cast<std::uint16_t>(tree.nodes[child].depth + 1));
  }
  tree.nodes.push_back(node);
  return tree.root();
}

Result<std::shared_ptr<const Expression::Tree>> parse_expression(std::string_view text) {
  if (text.size() > kLongestText)
    return fail(Code::invalid, "column {}: an expression may have {} characters at most", kLongestText + 1,
                kLongestText);
  FURLONG_TRY(auto tokens, tokenize(text));
  return Parser(text, std::move(tokens)).run();
}

}  // namespace furlong::lattice::internal
