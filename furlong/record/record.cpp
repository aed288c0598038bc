#include "furlong/record/record.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"

namespace furlong::record {
namespace {

constexpr std::array verdict_names{"winner", "dead-heat", "out-of-budget", "pinned", "classic", "none"};

// Days since 1970-01-01 of a date of the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date
// Algorithms").
std::int64_t days_since_1970(int year, int month, int day) {
  year -= month <= 2;
  const int era = year / 400;
  const int year_of_era = year - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return std::int64_t{era} * 146097 + day_of_era - 719468;
}

int days_in_month(int year, int month) {
  constexpr std::array days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return days[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

}  // namespace

std::string_view verdict_name(Verdict verdict) { return verdict_names[static_cast<std::size_t>(verdict)]; }

Result<Verdict> parse_verdict(std::string_view text) {
  const auto found = std::ranges::find(verdict_names, text);
  const std::vector<std::string> known(verdict_names.begin(), verdict_names.end());
  if (found == verdict_names.end())
    return fail(Code::invalid, "'{}' is no verdict{}; known are {}", text, did_you_mean(text, known),
                join(known, ", "));
  return static_cast<Verdict>(found - verdict_names.begin());
}

std::string class_text(const ProgramClass& program_class) {
  std::string text;
  for (const auto& [name, value] : program_class)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value.text());
  return text;
}

bool same_class(const ProgramClass& a, const ProgramClass& b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& feature) {
           return std::ranges::find(b, feature) != b.end();
         });
}

const RacedVariant* RaceRecord::find(std::string_view variant) const {
  const auto found = std::ranges::find(variants, variant, &RacedVariant::name);
  return found == variants.end() ? nullptr : &*found;
}

std::string make_record_id(Clock& clock, Random& random) {
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(clock.wall_us(), 0) / 1000);
  const std::uint64_t a = random.next(), b = random.next();
  std::array<std::uint8_t, 16> id;
  for (std::size_t i = 0; i < 6; ++i) id[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
  id[6] = static_cast<std::uint8_t>(0x70 | (a >> 60));
  id[7] = static_cast<std::uint8_t>(a);
  for (std::size_t i = 8; i < 16; ++i) id[i] = static_cast<std::uint8_t>(b >> (8 * (i - 8)));
  id[8] = static_cast<std::uint8_t>(0x80 | (id[8] & 0x3F));
  const std::string hex = to_hex(id);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

bool is_record_id(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::string_view("0123456789abcdef").find(text[i]) == std::string_view::npos)
      return false;
  }
  return text[14] == '7' && std::string_view("89ab").find(text[19]) != std::string_view::npos;
}

Result<std::int64_t> parse_stamp(std::string_view text) {
  const Error bad = fail(Code::invalid, "'{}' is no time as 2026-03-01T12:00:00Z", text.substr(0, 64));
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= shape.size() || !text.ends_with('Z')) return bad;
  std::array<int, 6> fields{};
  std::size_t field = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != shape[i]) return bad;
    if (digit)
      fields[field] = fields[field] * 10 + (text[i] - '0');
    else
      ++field;
  }
  const auto [year, month, day, hour, minute, second] = fields;
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
      minute > 59 || second > 59)
    return bad;
  std::int64_t micros = 0;
  const std::string_view rest = text.substr(shape.size(), text.size() - shape.size() - 1);  // ".25" or ""
  if (!rest.empty() && (rest[0] != '.' || rest.size() < 2)) return bad;
  std::int64_t unit = 100000;
  for (const char c : rest.substr(rest.empty() ? 0 : 1)) {
    if (c < '0' || c > '9') return bad;
    micros += unit * (c - '0');
    unit /= 10;  // digits past the sixth add nothing
  }
  return ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60'000'000 + second * 1'000'000 +
         micros;
}

Status check_complete(const RaceRecord& record) {
  const auto there = [](std::string_view key, const std::string& value) -> Status {
    if (value.empty()) return fail(Code::invalid, "the record has no {}", key);
    return {};
  };
  FURLONG_CHECK(there("id", record.id));
  FURLONG_CHECK(there("machine", record.machine));
  FURLONG_CHECK(there("slot", record.slot));
  return there("source", record.source);
}

}  // namespace furlong::record
