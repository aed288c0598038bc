#include "furlong/fleet/exchange/internal/stamps.h"

#include <array>
#include <string>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/exchange/record_reader.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace internal {
namespace {

constexpr std::int64_t second_us = 1'000'000, minute_us = 60 * second_us, hour_us = 60 * minute_us,
                       day_us = 24 * hour_us;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// 'd' stands for a digit, every other character for itself.
bool has_shape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'd' ? !is_digit(text[i]) : text[i] != shape[i]) return false;
  return true;
}

std::int64_t number(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

/// Of ".123" or ",123" at the beginning: how long it is, and microseconds.
std::pair<std::size_t, std::int64_t> fraction(std::string_view text) {
  if (text.size() < 2 || (text[0] != '.' && text[0] != ',') || !is_digit(text[1])) return {0, 0};
  std::size_t length = 1;
  std::int64_t us = 0, unit = 100'000;
  for (; length < text.size() && is_digit(text[length]); ++length, unit /= 10)
    us += unit * (text[length] - '0');
  return {length, us};
}

/// Of "Z", "+01:00", "+0100" at the beginning: how long it is, and what is to be added to the local time.
std::pair<std::size_t, std::int64_t> offset(std::string_view text) {
  if (text.starts_with('Z')) return {1, 0};
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return {0, 0};
  const bool colon = has_shape(text.substr(1), "dd:dd");
  if (!colon && !has_shape(text.substr(1), "dddd")) return {0, 0};
  const std::int64_t us =
      number(text.substr(1, 2)) * hour_us + number(text.substr(colon ? 4 : 3, 2)) * minute_us;
  return {colon ? 6 : 5, text[0] == '+' ? -us : us};
}

/// Of the day's "12:00:00": microseconds since midnight.
std::optional<std::int64_t> time_of_day(std::string_view text) {
  if (!has_shape(text, "dd:dd:dd")) return std::nullopt;
  const std::int64_t hour = number(text.substr(0, 2)), minute = number(text.substr(3, 2)),
                     second = number(text.substr(6, 2));
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return hour * hour_us + minute * minute_us + second * second_us + fraction(text.substr(8)).second;
}

std::int64_t floor_day(std::int64_t us) { return us - ((us % day_us) + day_us) % day_us; }

/// "Mar  1 12:00:00" in the given year.
std::optional<std::int64_t> month_stamp(std::string_view text, std::string_view year) {
  constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() < 15 || text[3] != ' ' || text[6] != ' ') return std::nullopt;
  for (std::size_t i = 0; i < months.size(); ++i) {
    if (!text.starts_with(months[i])) continue;
    const char tens = text[4] == ' ' ? '0' : text[4];
    const auto day = record::parse_stamp(std::string(year) + (i < 9 ? "-0" : "-") + std::to_string(i + 1) +
                                         "-" + tens + text[5] + "T00:00:00Z");
    const auto time = time_of_day(text.substr(7));
    if (day && time) return *day + *time;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FullStamp> full_stamp(std::string_view text) {
  constexpr std::size_t seconds_end = 19;
  if (!has_shape(text, "dddd-dd-dd") || text.size() < seconds_end || (text[10] != 'T' && text[10] != ' '))
    return std::nullopt;
  std::string plain(text.substr(0, seconds_end));
  plain[10] = 'T';
  const auto us = record::parse_stamp(plain + "Z");
  if (!us) return std::nullopt;
  const auto [part_length, part_us] = fraction(text.substr(seconds_end));
  const auto [zone_length, zone_us] = offset(text.substr(seconds_end + part_length));
  return FullStamp{.us = *us + part_us + zone_us, .length = seconds_end + part_length + zone_length};
}

void Stamps::see(std::string_view line) {
  if (line.starts_with('[')) line.remove_prefix(1);
  if (const auto full = full_stamp(line)) {
    now_us_ = full->us;
    return;
  }
  if (!date_us_) return;
  const std::int64_t now_us = now_us_.value_or(*date_us_);
  if (const auto time = time_of_day(line)) {
    std::int64_t us = floor_day(now_us) + *time;
    if (us < now_us - day_us / 2) us += day_us;
    now_us_ = us;
    return;
  }
  const std::string today = iso_time(now_us);
  if (auto us = month_stamp(line, std::string_view(today).substr(0, 4))) {
    const auto next_year = std::to_string(number(std::string_view(today).substr(0, 4)) + 1);
    // January after December; a date that lies back by less is the clock's, or the day's before the option.
    if (*us < now_us - 180 * day_us) us = month_stamp(line, next_year);
    if (us) now_us_ = *us;
  }
}

}  // namespace internal

Result<std::int64_t> parse_time_argument(std::string_view text) {
  if (text.size() == 10)
    if (const auto day = internal::full_stamp(std::string(text) + "T00:00:00Z")) return day->us;
  const auto stamp = internal::full_stamp(text);
  if (!stamp || stamp->length != text.size())
    return fail(Code::invalid, "'{}' is no time as 2026-03-01 or 2026-03-01T12:00:00Z", text.substr(0, 64));
  return stamp->us;
}

}  // namespace furlong::fleet
