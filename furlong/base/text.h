#pragma once
// Small string helpers used by every parser and printer.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// The candidate nearest to `word` by edit distance, or empty when none is near enough to be a slip
/// (distance over a third of the longer length). For "did you mean".
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// ", did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);
/// As did_you_mean; where no candidate is near enough to be the slip, the nearest ones all the same:
/// "; the nearest are 'r32', 'r64' and 'u8'" (at most `most`, those that begin alike before others). Empty
/// without candidates and for a word too long to be a slip.
std::string nearest_choices(std::string_view word, std::span<const std::string> candidates,
                            std::size_t most = 4);

/// Whole-string number parsing; anything else is `invalid` and quotes the text.
Result<std::int64_t> parse_integer(std::string_view text);
Result<double> parse_number(std::string_view text);

bool is_valid_utf8(std::string_view text);
/// Foreign words for a terminal: every control character, which could move its cursor or hide text, as a
/// blank.
std::string one_line(std::string_view text);
/// The same, but line breaks stay.
std::string without_controls(std::string_view text);
/// For HTML text and attribute values; control characters but tabs and line breaks, which HTML does not
/// allow, are blanks.
std::string html_escape(std::string_view text);
/// "1.5 GiB", "16 MiB", "12 B".
std::string human_bytes(std::uint64_t bytes);
/// What people type: "1.5G", "512 MiB", "65536 B"; powers of 1024 whatever the spelling. A bare number counts
/// `bare_unit` bytes. `invalid` for anything else, for nothing, and from 2^63 on.
Result<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t bare_unit = 1);
/// Where `offset` stands in `text`: 1-based line and column.
struct TextPosition {
  int line = 1;
  int column = 1;
};
TextPosition position_at(std::string_view text, std::size_t offset);

}  // namespace furlong
