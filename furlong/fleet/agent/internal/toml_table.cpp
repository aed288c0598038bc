#include "furlong/fleet/agent/internal/toml_table.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/bytes.h"
#include "furlong/base/text.h"

namespace furlong::fleet::internal {

TomlTable::TomlTable(const TomlNode& node, std::string file, std::string what)
    : node_(&node), file_(std::move(file)), what_(std::move(what)) {
  if (!node.is_table())
    error_ = fail(Code::invalid, "{}:{}:{}: {} must be a table, not {}", file_, node.line, node.column, what_,
                  node.type_name());
}

const TomlNode* TomlTable::find(std::string_view key) {
  asked_.emplace_back(key);
  return node_->is_table() ? node_->find(key) : nullptr;
}

void TomlTable::wrong(std::string_view key, const std::string& what) {
  if (error_) return;
  const TomlNode* at = node_->is_table() ? node_->find(key) : nullptr;
  if (at == nullptr) at = node_;
  error_ = fail(Code::invalid, "{}:{}:{}: {}: {}", file_, at->line, at->column, key, what);
}

void TomlTable::wrong_type(std::string_view key, const TomlNode& found, std::string_view wanted) {
  wrong(key, fmt::format("{} is wanted, not {}", wanted, found.type_name()));
}

void TomlTable::text(std::string_view key, std::string& into) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  const std::string* value = node->string();
  if (value == nullptr) return wrong_type(key, *node, "a string");
  if (value->find_first_of(std::string_view("\0\n\r", 3)) != std::string::npos)
    return wrong(key, "a line break or a zero byte cannot stand here");
  into = *value;
}

void TomlTable::texts(std::string_view key, std::vector<std::string>& into) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  const auto* list = node->array();
  if (list == nullptr) return wrong_type(key, *node, "an array of strings");
  std::vector<std::string> values;
  for (const TomlNode& each : *list) {
    const std::string* value = each.string();
    if (value == nullptr) return wrong_type(key, each, "an array of strings");
    if (value->find('\0') != std::string::npos) return wrong(key, "a zero byte cannot stand here");
    values.push_back(*value);
  }
  into = std::move(values);
}

void TomlTable::boolean(std::string_view key, bool& into) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  const bool* value = node->boolean();
  if (value == nullptr) return wrong_type(key, *node, "true or false");
  into = *value;
}

void TomlTable::number(std::string_view key, double& into, double least, double most) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  double value = 0;
  if (const auto* whole = node->integer())
    value = static_cast<double>(*whole);
  else if (const auto* real = node->number())
    value = *real;
  else
    return wrong_type(key, *node, "a number");
  if (!std::isfinite(value) || value < least || value > most)
    return wrong(key, fmt::format("{} is not between {} and {}", value, least, most));
  into = value;
}

void TomlTable::integer(std::string_view key, std::int64_t& into, std::int64_t least, std::int64_t most) {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  const auto* value = node->integer();
  if (value == nullptr) return wrong_type(key, *node, "an integer");
  if (*value < least || *value > most)
    return wrong(key, fmt::format("{} is not between {} and {}", *value, least, most));
  into = *value;
}

void TomlTable::hex64(std::string_view key, std::uint64_t& into) {
  std::string digits;
  text(key, digits);
  if (digits.empty()) {
    const TomlNode* node = node_->is_table() ? node_->find(key) : nullptr;
    if (node != nullptr && node->string() != nullptr) wrong(key, "16 hexadecimal digits are wanted");
    return;
  }
  const auto bytes = from_hex(digits);
  if (digits.size() != 16 || !bytes)
    return wrong(key, fmt::format("16 hexadecimal digits are wanted, not '{}'", one_line(digits)));
  into = 0;
  for (const std::uint8_t byte : *bytes) into = into << 8 | byte;
}

Status TomlTable::strict() const {
  if (error_) return *error_;
  for (const auto& [key, value] : *node_->table())
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
      return fail(Code::invalid, "{}:{}:{}: {} has no key '{}'{}", file_, value.key_line, value.key_column,
                  what_, one_line(key), nearest_choices(key, asked_));
  return {};
}

}  // namespace furlong::fleet::internal
