#include "furlong/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace furlong {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string_view trim(std::string_view text) {
  static constexpr std::string_view blank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string result;
  for (;;) {
    const std::size_t at = text.find(from);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(at + from.size());
  }
}

namespace {

// Edit distance with transpositions of neighbours (optimal string alignment): a swapped pair is one
// slip, as people make them.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before(width), above(width), row(width);
  for (std::size_t j = 0; j < width; ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

constexpr std::size_t kLongestSlip = 256;  // a longer word is no slip, and would cost quadratic time

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestSlip) return {};
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestSlip) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance * 3 > std::max(word.size(), candidate.size())) continue;
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string guess = nearest(word, candidates);
  return guess.empty() ? std::string() : fmt::format(", did you mean '{}'?", guess);
}

std::string nearest_choices(std::string_view word, std::span<const std::string> candidates,
                            std::size_t most) {
  if (std::string guess = did_you_mean(word, candidates); !guess.empty()) return guess;
  if (word.size() > kLongestSlip) return {};
  struct Choice {
    std::ptrdiff_t distance;
    std::ptrdiff_t alike;  // letters at the beginning: 'r8' is nearer to 'r32' than to 'g64'
    std::string_view text;
  };
  std::vector<Choice> choices;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestSlip) continue;
    const auto differ = std::mismatch(word.begin(), word.end(), candidate.begin(), candidate.end());
    choices.push_back({static_cast<std::ptrdiff_t>(edit_distance(word, candidate)),
                       differ.first - word.begin(), candidate});
  }
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    return std::pair(a.distance - a.alike, -a.alike) < std::pair(b.distance - b.alike, -b.alike);
  });
  choices.resize(std::min(choices.size(), most));
  if (choices.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < choices.size(); ++i)
    list += fmt::format("{}'{}'", i == 0 ? "" : i + 1 == choices.size() ? " and " : ", ", choices[i].text);
  return fmt::format("; the nearest {} {}", choices.size() == 1 ? "is" : "are", list);
}

namespace {

// At most 60 bytes of a text that may be anything, for a message.
std::string quoted(std::string_view text) {
  static constexpr std::size_t kept = 60;
  return text.size() <= kept ? fmt::format("'{}'", text) : fmt::format("'{}…'", text.substr(0, kept));
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    return fail(Code::invalid, "{} does not fit a 64-bit integer", quoted(text));
  if (error != std::errc() || end != text.data() + text.size())
    return fail(Code::invalid, "{} is not an integer", quoted(text));
  return value;
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    return fail(Code::invalid, "{} does not fit a double", quoted(text));
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return fail(Code::invalid, "{} is not a number", quoted(text));
  return value;
}

namespace {

// Length of the UTF-8 sequence at the start of `text`, or 0 when it is none: overlong forms,
// surrogates and values past U+10FFFF are refused (Unicode, table 3-7).
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  return length;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace {
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
}  // namespace

namespace {

/// UTF-8 of the controls beyond ASCII: C1 (U+0080 to U+009F), and those that turn the direction of what
/// follows (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069). Blanks in their place.
void blank_wide_controls(std::string& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (byte(i) == 0xC2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9F) {
      text[i] = text[i + 1] = ' ';
    } else if (byte(i) == 0xE2 && i + 2 < text.size()) {
      const unsigned a = byte(i + 1), b = byte(i + 2);
      const bool turns = (a == 0x80 && (b == 0x8E || b == 0x8F || (b >= 0xAA && b <= 0xAE))) ||
                         (a == 0x81 && b >= 0xA6 && b <= 0xA9);
      if (turns) text.replace(i, 3, 3, ' ');
    }
  }
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string clean(text);
  std::ranges::replace_if(clean, is_control, ' ');
  blank_wide_controls(clean);
  return clean;
}

std::string without_controls(std::string_view text) {
  std::string clean(text);
  std::ranges::replace_if(clean, [](char c) { return is_control(c) && c != '\n'; }, ' ');
  blank_wide_controls(clean);
  return clean;
}

std::string html_escape(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += is_control(c) && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // Rounded before it is compared, so that 1023.97 KiB reads "1 MiB" and not "1024 KiB".
  while (std::round(value * 10) / 10 >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, units[unit]);
}

Result<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t bare_unit) {
  const auto bad = [&] {
    return fail(Code::invalid, "'{}' is no amount of memory, such as 512M or 1.5G", text);
  };
  std::string_view number = trim(text);
  const std::size_t end = number.find_last_of("0123456789.");
  if (end == number.npos) return bad();
  std::string unit;
  for (const char c : trim(number.substr(end + 1))) unit += static_cast<char>(std::tolower(c));
  number = number.substr(0, end + 1);
  auto scale = static_cast<double>(bare_unit);
  if (!unit.empty()) {
    static constexpr std::string_view prefixes = "bkmgtpe";
    const std::size_t power = prefixes.find(unit.front());
    const std::string_view rest = std::string_view(unit).substr(1);
    const bool known = power == 0 ? rest.empty() : rest.empty() || rest == "b" || rest == "ib";
    if (power == prefixes.npos || !known) return bad();
    scale = std::pow(1024.0, static_cast<double>(power));
  }
  const auto value = parse_number(number);
  if (!value || !(*value >= 0) || !(*value * scale < 9.2e18)) return bad();
  return static_cast<std::uint64_t>(std::llround(*value * scale));
}

TextPosition position_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  TextPosition position;
  position.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n');
  position.column =
      1 + static_cast<int>(before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1));
  return position;
}

}  // namespace furlong
