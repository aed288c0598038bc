#pragma once
// Reads the members of a TOML table one by one into plain variables, keeps the first thing that is wrong with
// file, line and column, and refuses keys that nobody asked for.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/toml.h"

namespace furlong::fleet::internal {

/// One thread at a time; the node must live as long. Getters leave their variable alone when the key is
/// absent.
class TomlTable {
 public:
  /// `what` names the table in messages ("[work]"); a node that is no table is the first error.
  TomlTable(const TomlNode& node, std::string file, std::string what);

  void text(std::string_view key, std::string& into);
  void texts(std::string_view key, std::vector<std::string>& into);
  void boolean(std::string_view key, bool& into);
  /// Finite, in [least, most]; whole numbers are numbers too.
  void number(std::string_view key, double& into, double least, double most);
  void integer(std::string_view key, std::int64_t& into, std::int64_t least, std::int64_t most);
  /// A whole number of 64 bits as 16 hexadecimal digits: TOML's own integers have a sign.
  void hex64(std::string_view key, std::uint64_t& into);
  /// The member, or nullptr; counts as asked for.
  const TomlNode* find(std::string_view key);

  /// `invalid` at the key's value (or at the table, where it is absent), kept when it is the first error.
  void wrong(std::string_view key, const std::string& what);
  /// The first error, else the first key that nobody asked for with the nearest that somebody did.
  Status strict() const;

 private:
  void wrong_type(std::string_view key, const TomlNode& found, std::string_view wanted);

  const TomlNode* node_;
  std::string file_;
  std::string what_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

}  // namespace furlong::fleet::internal
