#pragma once
// The times that lines of logs begin with.

#include <cstdint>
#include <optional>
#include <string_view>

namespace furlong::fleet::internal {

/// Follows the stamps of one log: "2026-03-01T12:00:00.5Z", "[2026-03-01 12:00:00.123]", with an offset
/// "+01:00", "+0100"; and, with a date to begin at, "Mar  1 12:00:00" and "12:00:00". Without an offset times
/// are UTC. A time of day that falls back by half a day or more is the next day's, a month before the last
/// one the next year's.
class Stamps {
 public:
  /// `date_us`: the day of the first line; nullopt: not known.
  explicit Stamps(std::optional<std::int64_t> date_us) : date_us_(date_us), now_us_(date_us) {}
  /// Reads the stamp at the line's beginning, if there is one.
  void see(std::string_view line);
  /// Of the newest stamp, else the date; nullopt: neither is there.
  std::optional<std::int64_t> now_us() const { return now_us_; }

 private:
  std::optional<std::int64_t> date_us_, now_us_;
};

/// A stamp with a date, and how many characters it has; nullopt: `text` does not begin with one.
struct FullStamp {
  std::int64_t us = 0;
  std::size_t length = 0;
};
std::optional<FullStamp> full_stamp(std::string_view text);

}  // namespace furlong::fleet::internal
