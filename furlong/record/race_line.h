#pragma once
// The race line: one line of text per race, for logs and for readers that know its first part
// (docs/formats/race-line.md). Pure functions, safe from any thread.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/record/record.h"

namespace furlong::record {

struct RaceLine {
  struct Variant {
    std::string name;
    std::optional<double> rate;  ///< nullopt: out, written `-`
    std::optional<int> regs;
    std::optional<int> warps;
    bool operator==(const Variant&) const = default;
  };
  struct Out {
    std::string variant;
    std::string why;
    bool operator==(const Out&) const = default;
  };

  std::string epoch;  ///< 16 lower-case hexadecimal digits
  std::string device;
  std::string driver;
  std::string arch;
  ProgramClass program_class;  ///< lottery: loads, wide
  std::vector<Variant> variants;
  std::string winner;  ///< empty: none, written `-`
  std::optional<double> rate;
  std::optional<double> base_rate;
  std::optional<double> gain_pct;
  double compile_ms = 0;
  double bench_ms = 0;
  double total_ms = 0;
  bool pinned = false;  ///< "pinned by tuning"
  bool tuned = false;   ///< "tuned order"; not written when pinned
  std::optional<Verdict> verdict;
  std::optional<Interval> ci;  ///< percent
  std::optional<int> heats;
  std::optional<double> paused_ms;
  std::vector<Out> outs;
  bool operator==(const RaceLine&) const = default;
};

/// One line without a newline, whatever bytes the names hold. Rates have six significant digits, times are
/// whole milliseconds, gain and interval have two decimals: printing what was parsed gives the same line.
std::string print(const RaceLine& line);
/// Reads a line as print writes it. Words after `total <ms> ms` that it does not know are skipped. `invalid`
/// says which field was expected and at which column.
Result<RaceLine> parse_race_line(std::string_view text);

/// The line of a record.
RaceLine race_line(const RaceRecord& record);
/// print(race_line(record)).
std::string race_record_line(const RaceRecord& record);

}  // namespace furlong::record
