#pragma once
// The one TOML reader: toml++ behind a plain tree in which every node knows its line and column, so
// that a program file's errors can name them.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "furlong/base/error.h"

namespace furlong {

struct TomlMember;

/// A node of a TOML document. Tables keep the order of the file.
struct TomlNode {
  using Array = std::vector<TomlNode>;
  using Table = std::vector<TomlMember>;
  std::variant<bool, std::int64_t, double, std::string, Array, Table> value;
  int line = 0;      ///< 1-based
  int column = 0;    ///< 1-based
  int key_line = 0;  ///< of the key, for table members
  int key_column = 0;

  bool is_table() const { return std::holds_alternative<Table>(value); }
  bool is_array() const { return std::holds_alternative<Array>(value); }
  const Table* table() const { return std::get_if<Table>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  const std::string* string() const { return std::get_if<std::string>(&value); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value); }
  const double* number() const { return std::get_if<double>(&value); }
  const bool* boolean() const { return std::get_if<bool>(&value); }
  /// Member of a table, or nullptr.
  const TomlNode* find(std::string_view key) const;
  /// "a string", "an integer", "a table", …
  std::string_view type_name() const;
};

/// A key and its value: `for (const auto& [key, node] : *table)`. A struct of its own rather than a
/// std::pair, which clang cannot complete inside a type that holds itself.
struct TomlMember {
  std::string first;
  TomlNode second;
};

/// `name` is the file's name for messages: "name:line:column: what". Dates and times are refused
/// as `invalid` (Furlong's files have none). Depth is bounded at 64.
Result<TomlNode> toml_parse(std::string_view text, std::string_view name);

}  // namespace furlong
