#pragma once
// Comma-separated values as RFC 4180 has them: one writer, one reader.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::shard {

/// Quoted where it must be: commas, quotes, line breaks, and blanks at its ends.
std::string csv_field(std::string_view text);
/// Fields with commas between and a newline after.
std::string csv_row(std::span<const std::string> fields);
/// `invalid` with the line for a quote that is not closed or stands inside a field. An empty last line is
/// none.
Result<std::vector<std::vector<std::string>>> parse_csv(std::string_view text, const std::string& name);
/// The shortest text that reads back as the same number.
std::string csv_number(double value);

}  // namespace furlong::shard
