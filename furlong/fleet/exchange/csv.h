#pragma once
// Race records as CSV: one row a variant (docs/formats/fleet-exchange.md). make_record_reader() reads it
// back. Pure functions, safe from any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/record/record.h"

namespace furlong::fleet {

/// The names of all columns, the row that begins a file; ended by a newline.
std::string csv_head();
/// One row a variant, each ended by a newline.
std::string csv_rows(const record::RaceRecord& record);

/// The cells of one row (RFC 4180), quotes taken off; nullopt: a quote is still open at its end, or stands
/// where none may.
std::optional<std::vector<std::string>> parse_csv_row(std::string_view row);

}  // namespace furlong::fleet
