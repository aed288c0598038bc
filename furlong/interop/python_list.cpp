#include "furlong/interop/python_list.h"

#include <algorithm>
#include <optional>

#include "furlong/base/text.h"
#include "furlong/lattice/expression.h"

namespace furlong::interop {
namespace {

using lattice::Expression;
using lattice::Value;

constexpr std::size_t kLongestText = 65536;
constexpr std::size_t kMostValues = 65536;
constexpr int kDeepestNesting = 32;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A piece of the text, known by its place, so that every error can name its column.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {}

  Result<std::vector<Value>> run() {
    FURLONG_CHECK(check_brackets());
    return sum({0, text_.size()}, 0);
  }

 private:
  Error error(std::size_t at, std::string_view what) const {
    return fail(Code::invalid, "column {}: {}", at + 1, what);
  }

  Piece trimmed(Piece piece) const {
    const auto blank = [&](std::size_t i) { return trim(text_.substr(i, 1)).empty(); };
    while (piece.begin < piece.end && blank(piece.begin)) ++piece.begin;
    while (piece.begin < piece.end && blank(piece.end - 1)) --piece.end;
    return piece;
  }
  std::string_view view(Piece piece) const { return text_.substr(piece.begin, piece.end - piece.begin); }

  /// Marks what lies inside brackets or quotes: depth_[i] is 0 outside. A bracket counts as inside.
  Status check_brackets() {
    depth_.assign(text_.size() + 1, 0);
    std::vector<char> open;
    char quote = '\0';
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      depth_[i] = open.size() + (quote != '\0' ? 1 : 0);
      if (quote != '\0') {
        if (c == '\\' && i + 1 < text_.size()) {
          depth_[i + 1] = depth_[i];
          ++i;
        } else if (c == quote) {
          quote = '\0';
        }
      } else if (c == '\'' || c == '"') {
        quote = c;
        depth_[i] = open.size() + 1;
      } else if (c == '(' || c == '[') {
        open.push_back(c == '(' ? ')' : ']');
        depth_[i] = open.size();
      } else if (c == ')' || c == ']') {
        if (open.empty() || open.back() != c) return error(i, fmt::format("'{}' closes nothing", c));
        open.pop_back();
      }
    }
    if (quote != '\0') return error(text_.size(), "a quoted word has no end");
    if (!open.empty()) return error(text_.size(), fmt::format("'{}' is missing", open.back()));
    return {};
  }

  std::vector<Piece> split_at(Piece piece, char separator, std::size_t depth) const {
    std::vector<Piece> parts;
    std::size_t begin = piece.begin;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      if (text_[i] != separator || depth_[i] != depth) continue;
      parts.push_back({begin, i});
      begin = i + 1;
    }
    parts.push_back({begin, piece.end});
    return parts;
  }

  std::optional<std::size_t> find_word(Piece piece, std::string_view word, std::size_t depth) const {
    for (std::size_t i = piece.begin; i + word.size() <= piece.end; ++i) {
      if (depth_[i] != depth || text_.substr(i, word.size()) != word) continue;
      const bool starts = i == piece.begin || !is_word_character(text_[i - 1]);
      const bool ends = i + word.size() == piece.end || !is_word_character(text_[i + word.size()]);
      if (starts && ends) return i;
    }
    return std::nullopt;
  }

  Result<std::vector<Value>> sum(Piece piece, std::size_t depth) {
    if (++nesting_ > kDeepestNesting) return error(piece.begin, "the lists are nested too deep");
    std::vector<Value> values;
    for (const Piece part : split_at(piece, '+', depth)) {
      FURLONG_TRY(auto more, term(trimmed(part), depth));
      values.insert(values.end(), more.begin(), more.end());
      if (values.size() > kMostValues) return error(part.begin, "more than 65536 values");
    }
    --nesting_;
    return values;
  }

  Result<std::vector<Value>> term(Piece piece, std::size_t depth) {
    const std::string_view text = view(piece);
    if (text.empty()) return error(piece.begin, "a list should stand here");
    if (closes_at_end(piece, piece.begin)) {
      const Piece inside{piece.begin + 1, piece.end - 1};
      if (text.front() == '[') return items(inside, depth + 1);
      if (split_at(inside, ',', depth + 1).size() > 1 || view(trimmed(inside)).empty())
        return items(inside, depth + 1);
      return sum(inside, depth + 1);  // a bracketed list
    }
    for (const std::string_view function : {"list", "range"}) {
      const std::size_t open = piece.begin + function.size();
      if (!text.starts_with(function) || !closes_at_end(piece, open)) continue;
      const Piece inside{open + 1, piece.end - 1};
      if (function == "range") return range(inside, depth + 1);
      return sum(inside, depth + 1);
    }
    return error(piece.begin, "a list [...], list(...) or range(...) should stand here");
  }

  /// Whether the bracket at `open` is closed by the piece's last character.
  bool closes_at_end(Piece piece, std::size_t open) const {
    if (open >= piece.end || (text_[open] != '[' && text_[open] != '(')) return false;
    for (std::size_t i = open + 1; i < piece.end; ++i)
      if (depth_[i] == depth_[open] && (text_[i] == ']' || text_[i] == ')')) return i + 1 == piece.end;
    return false;
  }

  Result<std::vector<Value>> items(Piece piece, std::size_t depth) {
    if (find_word(piece, "for", depth)) return comprehension(piece, depth);
    std::vector<Value> values;
    auto parts = split_at(piece, ',', depth);
    if (view(trimmed(parts.back())).empty()) parts.pop_back();  // a trailing comma, or nothing at all
    if (parts.size() > kMostValues) return error(piece.begin, "more than 65536 values");
    for (const Piece part : parts) {
      FURLONG_TRY(auto expression, parse(part));
      FURLONG_TRY(auto value, evaluate(expression, part, {}));
      values.push_back(std::move(value));
    }
    return values;
  }

  Result<std::vector<Value>> comprehension(Piece piece, std::size_t depth) {
    const std::size_t for_at = *find_word(piece, "for", depth);
    const auto in_at = find_word({for_at + 3, piece.end}, "in", depth);
    if (!in_at) return error(for_at, "'for' without 'in'");
    const Piece name = trimmed({for_at + 3, *in_at});
    const std::string_view name_text = view(name);
    if (name_text.empty() || !std::all_of(name_text.begin(), name_text.end(), is_word_character))
      return error(name.begin, "a comprehension runs over one name");
    Piece source{*in_at + 2, piece.end};
    if (const auto second = find_word(source, "for", depth))
      return error(*second, "only one 'for' is supported");
    std::optional<Piece> condition;
    if (const auto if_at = find_word(source, "if", depth)) {
      condition = Piece{*if_at + 2, piece.end};
      source.end = *if_at;
    }
    FURLONG_TRY(const auto over, sum(source, depth));
    const Piece result{piece.begin, for_at};
    FURLONG_TRY(const auto expression, parse(result));
    std::optional<Expression> filter;
    if (condition) {
      FURLONG_TRY(filter, parse(*condition));
    }
    std::vector<Value> values;
    lattice::Environment environment;
    for (const auto& item : over) {
      environment.insert_or_assign(std::string(name_text), item);
      if (filter) {
        FURLONG_TRY(const Value keep, evaluate(*filter, *condition, environment));
        if (!keep.truthy()) continue;
      }
      FURLONG_TRY(auto value, evaluate(expression, result, environment));
      values.push_back(std::move(value));
    }
    return values;
  }

  Result<std::vector<Value>> range(Piece piece, std::size_t depth) {
    std::vector<std::int64_t> bounds;
    for (const Piece part : split_at(piece, ',', depth)) {
      FURLONG_TRY(const auto expression, parse(part));
      FURLONG_TRY(const Value value, evaluate(expression, part, {}));
      if (value.is_float() || value.is_word())
        return error(trimmed(part).begin, "range() takes whole numbers");
      FURLONG_TRY(const std::int64_t bound, lattice::to_integer(value, "range()"));
      bounds.push_back(bound);
    }
    if (bounds.size() > 3) return error(piece.begin, "range() takes one to three numbers");
    const std::int64_t start = bounds.size() > 1 ? bounds[0] : 0;
    const std::int64_t stop = bounds.size() > 1 ? bounds[1] : bounds[0];
    const std::int64_t step = bounds.size() > 2 ? bounds[2] : 1;
    if (step == 0) return error(piece.begin, "range() by steps of 0");
    std::vector<Value> values;
    for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
      if (values.size() == kMostValues) return error(piece.begin, "more than 65536 values");
      values.emplace_back(i);
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return values;
  }

  Result<Expression> parse(Piece piece) const {
    auto parsed = Expression::parse(view(piece));
    if (parsed) return parsed;
    auto again = Expression::parse(padded(piece));
    return again ? std::move(parsed) : std::move(again);
  }

  Result<Value> evaluate(const Expression& expression, Piece piece,
                         const lattice::Environment& environment) const {
    auto value = expression.evaluate(environment);
    if (value) return value;
    FURLONG_TRY(const auto again, Expression::parse(padded(piece)));
    return again.evaluate(environment);
  }

  /// The piece at its column, with blanks before it: its errors then name the column in the whole text.
  std::string padded(Piece piece) const { return std::string(piece.begin, ' ') + std::string(view(piece)); }

  std::string_view text_;
  std::vector<std::size_t> depth_;
  int nesting_ = 0;
};

}  // namespace

Result<std::vector<Value>> python_list(std::string_view text) {
  if (text.size() > kLongestText)
    return fail(Code::invalid, "column 65537: a list may have 65536 characters at most");
  return ListReader(text).run();
}

}  // namespace furlong::interop
