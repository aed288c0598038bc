#pragma once
// The plain rule that the race is compared with: time each variant once, take the fastest.

#include <cstddef>
#include <span>
#include <vector>

namespace furlong::stats {

struct ClassicRules {
  double margin = 0.005;  ///< base stays unless beaten by more than this (rate ratio - 1)
  double window_s = 2.0;  ///< length of one turn
  int rounds = 1;         ///< turns per variant
};

struct ClassicResult {
  std::size_t winner = 0;    ///< 0: base stays
  std::vector<double> gain;  ///< per variant over base (ratio - 1); NaN: not timed
};

/// rounds[r][v] is the cost (seconds or any unit) of variant v in round r; variant 0 is base; NaN, zero or
/// less: not timed in that round. A variant's cost is the median over its rounds. The variant of the lowest
/// cost wins when it beats base by more than the margin; of equals the first. Without a base time, base
/// stays. Pure.
ClassicResult classic(std::span<const std::vector<double>> rounds, const ClassicRules& rules = {});

}  // namespace furlong::stats
