#pragma once
// Typed access to the TOML tree of a program file: every error names file, line and column, and an unknown
// word the nearest valid one.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/toml.h"
#include "furlong/lattice/expression.h"
#include "furlong/lattice/value.h"

namespace furlong::program::internal {

/// Where something stands in the file; line 0: nowhere.
struct Place {
  int line = 0;
  int column = 0;
};
Place place_of(const TomlNode& node);
Place place_of_key(const TomlNode& node);

/// An expression and where its text starts, for errors found later (undefined names).
struct PlacedExpression {
  lattice::Expression expression;
  const TomlNode* node = nullptr;  ///< null: a default that no key gave
  std::string what;                ///< "grid of kernel 'add'"
};

/// `name` and `text` must outlive the reader, and the tree what it returns. Not thread safe.
class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : text_(text), name_(name) {}
  std::string_view name() const { return name_; }

  template <class... A>
  Error error(Place place, fmt::format_string<A...> format, A&&... args) const {
    return fail(Code::invalid, "{}:{}:{}: {}", name_, place.line, place.column,
                fmt::format(format, std::forward<A>(args)...));
  }
  template <class... A>
  Error error(const TomlNode& node, fmt::format_string<A...> format, A&&... args) const {
    return error(place_of(node), format, std::forward<A>(args)...);
  }

  /// An unknown key is an error at the key. `where` is "[launch]" or "this [[knob]]".
  Status check_keys(const TomlNode& table, std::string_view where,
                    std::initializer_list<std::string_view> allowed) const;
  /// ", did you mean 'x'?", or "; it can be a, b or c" when none is near.
  static std::string choices(std::string_view word, const std::vector<std::string>& allowed);

  /// A member that must be there.
  Result<const TomlNode*> required(const TomlNode& table, std::string_view where, std::string_view key) const;
  Status expect_table(const TomlNode& node, std::string_view what) const;
  Result<std::string> string(const TomlNode& node, std::string_view what) const;
  /// A string that is not empty and has no NUL byte.
  Result<std::string> word(const TomlNode& node, std::string_view what) const;
  Result<std::int64_t> integer(const TomlNode& node, std::string_view what) const;
  Result<double> number(const TomlNode& node, std::string_view what) const;
  Result<bool> boolean(const TomlNode& node, std::string_view what) const;
  Result<const TomlNode::Array*> array(const TomlNode& node, std::string_view what) const;
  /// An array of strings, or one string.
  Result<std::vector<std::string>> words(const TomlNode& node, std::string_view what) const;
  /// Index of the word in `allowed`; the error shows the choices.
  Result<std::size_t> one_of(const TomlNode& node, std::string_view what,
                             const std::vector<std::string>& allowed) const;
  /// A letter or '_', then letters, digits and '_'; no word of the expression language.
  Result<std::string> identifier(const TomlNode& node, std::string_view what) const;
  Status check_identifier(Place place, std::string_view text, std::string_view what) const;
  /// Integer, boolean, string, and float where `floats`.
  Result<lattice::Value> value(const TomlNode& node, std::string_view what, bool floats) const;
  /// A number, boolean or expression string.
  Result<PlacedExpression> expression(const TomlNode& node, std::string_view what) const;
  /// Where column `column` (1-based) of the string at `node` stands in the file. Exact for one-line strings
  /// without escapes; the string's start otherwise.
  Place inside(const TomlNode& node, int column) const;

  /// Byte offset of a place, if it is in the text.
  std::optional<std::size_t> offset(Place place) const;
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  std::string_view name_;
};

/// Whether the text is a name that expressions can use.
bool is_identifier(std::string_view text);
/// Takes "column N: what" apart; nullopt when the message does not start so.
std::optional<std::pair<int, std::string>> split_column(std::string_view message);

}  // namespace furlong::program::internal
