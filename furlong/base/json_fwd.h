#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t max_bytes = 64u << 20;
  int max_depth = 64;
};

/// Strict: UTF-8 only, no duplicate keys, no NaN or infinity, no trailing bytes, bounded size and
/// depth. The error is `invalid` and names `name` (a file, "line 3 of …"), the byte (counted
/// from 0), the line and the column.
Result<Json> json_parse(std::string_view text, std::string_view name, JsonLimits limits = {});

/// One line, no spaces; NaN and infinity become null.
std::string json_line(const Json& value);
/// Two-space indentation, newline at the end.
std::string json_pretty(const Json& value);

/// Reads a member with a clear error: missing or of another type is `invalid` and names `name`.`key`.
Result<std::string> json_string(const Json& object, std::string_view key, std::string_view name);
Result<double> json_number(const Json& object, std::string_view key, std::string_view name);
Result<std::int64_t> json_integer(const Json& object, std::string_view key, std::string_view name);
Result<bool> json_bool(const Json& object, std::string_view key, std::string_view name);

}  // namespace furlong
