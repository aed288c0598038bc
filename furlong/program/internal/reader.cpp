#include "furlong/program/internal/reader.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "furlong/base/text.h"

namespace furlong::program::internal {
namespace {

constexpr std::array<std::string_view, 15> kReserved = {"and",   "or",   "not",   "in",   "if",
                                                        "else",  "True", "False", "None", "true",
                                                        "false", "min",  "max",   "abs",  "ceil_div"};

bool is_letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Place place_of(const TomlNode& node) { return {node.line, node.column}; }
Place place_of_key(const TomlNode& node) {
  return node.key_line > 0 ? Place{node.key_line, node.key_column} : place_of(node);
}

bool is_identifier(std::string_view text) {
  if (text.empty() || text.size() > 100 || !is_letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::optional<std::pair<int, std::string>> split_column(std::string_view message) {
  constexpr std::string_view start = "column ";
  if (!message.starts_with(start)) return std::nullopt;
  message.remove_prefix(start.size());
  int column = 0;
  const auto [end, error] = std::from_chars(message.data(), message.data() + message.size(), column);
  message.remove_prefix(static_cast<std::size_t>(end - message.data()));
  if (error != std::errc() || !message.starts_with(": ")) return std::nullopt;
  return std::pair(column, std::string(message.substr(2)));
}

std::string Reader::choices(std::string_view word, const std::vector<std::string>& allowed) {
  const std::string guess = did_you_mean(word, allowed);
  if (!guess.empty() || allowed.empty()) return guess;
  std::string list;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (i > 0) list += i + 1 == allowed.size() ? " or " : ", ";
    list += allowed[i];
  }
  return "; it can be " + list;
}

Status Reader::check_keys(const TomlNode& table, std::string_view where,
                          std::initializer_list<std::string_view> allowed) const {
  FURLONG_CHECK(expect_table(table, where));
  for (const auto& [key, member] : *table.table()) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    return error(place_of_key(member), "unknown key '{}' in {}{}", key, where,
                 choices(key, std::vector<std::string>(allowed.begin(), allowed.end())));
  }
  return {};
}

Result<const TomlNode*> Reader::required(const TomlNode& table, std::string_view where,
                                         std::string_view key) const {
  const TomlNode* node = table.find(key);
  if (node == nullptr) return error(table, "{} needs the key '{}'", where, key);
  return node;
}

Status Reader::expect_table(const TomlNode& node, std::string_view what) const {
  if (node.is_table()) return {};
  return error(node, "{} must be a table, not {}", what, node.type_name());
}

Result<std::string> Reader::string(const TomlNode& node, std::string_view what) const {
  if (const auto* text = node.string()) return *text;
  return error(node, "{} must be a string, not {}", what, node.type_name());
}

Result<std::string> Reader::word(const TomlNode& node, std::string_view what) const {
  FURLONG_TRY(std::string text, string(node, what));
  if (text.empty()) return error(node, "{} is empty", what);
  if (text.find('\0') != std::string::npos) return error(node, "{} has a NUL character", what);
  return text;
}

Result<std::int64_t> Reader::integer(const TomlNode& node, std::string_view what) const {
  if (const auto* value = node.integer()) return *value;
  return error(node, "{} must be an integer, not {}", what, node.type_name());
}

Result<double> Reader::number(const TomlNode& node, std::string_view what) const {
  if (const auto* whole = node.integer()) return static_cast<double>(*whole);
  if (const auto* real = node.number()) return *real;
  return error(node, "{} must be a number, not {}", what, node.type_name());
}

Result<bool> Reader::boolean(const TomlNode& node, std::string_view what) const {
  if (const auto* value = node.boolean()) return *value;
  return error(node, "{} must be true or false, not {}", what, node.type_name());
}

Result<const TomlNode::Array*> Reader::array(const TomlNode& node, std::string_view what) const {
  if (const auto* items = node.array()) return items;
  return error(node, "{} must be an array, not {}", what, node.type_name());
}

Result<std::vector<std::string>> Reader::words(const TomlNode& node, std::string_view what) const {
  std::vector<std::string> list;
  if (node.string() != nullptr) {
    FURLONG_TRY(list.emplace_back(), word(node, what));
    return list;
  }
  if (!node.is_array())
    return error(node, "{} must be a string or an array of strings, not {}", what, node.type_name());
  for (const TomlNode& item : *node.array()) {
    FURLONG_TRY(list.emplace_back(), word(item, fmt::format("each item of {}", what)));
  }
  return list;
}

Result<std::size_t> Reader::one_of(const TomlNode& node, std::string_view what,
                                   const std::vector<std::string>& allowed) const {
  FURLONG_TRY(const std::string text, string(node, what));
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  if (found == allowed.end()) return error(node, "{} cannot be '{}'{}", what, text, choices(text, allowed));
  return static_cast<std::size_t>(found - allowed.begin());
}

Status Reader::check_identifier(Place place, std::string_view text, std::string_view what) const {
  if (!is_identifier(text))
    return error(place, "{} '{}' must be a letter or '_' and then letters, digits and '_'", what, text);
  if (std::find(kReserved.begin(), kReserved.end(), text) != kReserved.end())
    return error(place, "{} '{}' is a word of the expression language; choose another", what, text);
  return {};
}

Result<std::string> Reader::identifier(const TomlNode& node, std::string_view what) const {
  FURLONG_TRY(std::string text, string(node, what));
  FURLONG_CHECK(check_identifier(place_of(node), text, what));
  return text;
}

Result<lattice::Value> Reader::value(const TomlNode& node, std::string_view what, bool floats) const {
  if (const auto* b = node.boolean()) return lattice::Value(*b);
  if (const auto* i = node.integer()) return lattice::Value(*i);
  if (const auto* d = node.number(); d != nullptr && floats) return lattice::Value(*d);
  if (const auto* s = node.string()) return lattice::Value(*s);
  return error(node, "{} must be an integer, {}a boolean or a word, not {}", what, floats ? "a float, " : "",
               node.type_name());
}

Result<PlacedExpression> Reader::expression(const TomlNode& node, std::string_view what) const {
  PlacedExpression placed;
  placed.node = &node;
  placed.what = what;
  if (node.string() == nullptr) {
    if (node.is_array() || node.is_table())
      return error(node, "{} must be a number or an expression in quotes, not {}", what, node.type_name());
    FURLONG_TRY(const lattice::Value constant, value(node, what, true));
    // Through the parser, so that the expression's text can stand inside another one.
    const std::string literal = constant.is_bool() ? (constant.truthy() ? "True" : "False") : constant.text();
    auto number = lattice::Expression::parse(literal);
    if (!number) return error(node, "{}: {}", what, number.error().text());
    placed.expression = *std::move(number);
    return placed;
  }
  auto parsed = lattice::Expression::parse(*node.string());
  if (!parsed) {
    const auto column = split_column(parsed.error().message());
    if (!column) return error(node, "{}: {}", what, parsed.error().text());
    return error(inside(node, column->first), "{}: {}", what, column->second);
  }
  placed.expression = *std::move(parsed);
  return placed;
}

std::optional<std::size_t> Reader::offset(Place place) const {
  std::size_t at = 0;
  for (int line = 1; line < place.line; ++line) {
    at = text_.find('\n', at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
  }
  // Columns count code points: continuation bytes belong to the one before.
  for (int column = 1; column < place.column; ++column) {
    if (at >= text_.size() || text_[at] == '\n') return std::nullopt;
    ++at;
    while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) ++at;
  }
  if (at >= text_.size()) return std::nullopt;
  return at;
}

Place Reader::inside(const TomlNode& node, int column) const {
  const Place start = place_of(node);
  const auto at = offset(start);
  if (!at || node.string() == nullptr) return start;
  const char quote = text_[*at];
  if (quote != '"' && quote != '\'') return start;
  if (!text_.substr(*at + 1).starts_with(*node.string())) return start;  // escapes or a string of many lines
  return {start.line, start.column + column};
}

}  // namespace furlong::program::internal
