#pragma once
// From pairs to races to regimes: one log ratio with an interval that can be stood for. Derivation:
// docs/lattice.md, "Audit". Internal to furlong/audit.

#include <span>
#include <vector>

#include "furlong/audit/audit.h"

namespace furlong::audit::internal {

/// The chance that an interval of a record misses: stats::RaceRules::eliminate_error, in percent 0.5.
inline constexpr double kRecordError = 0.005;

/// From so many races on, those that disagree have an interval of their median that leaves the outermost out:
/// the least n with 2 P(Binomial(n, 1/2) < 2) <= kRecordError.
inline constexpr int kRacesOfSignTest = 13;

/// One log ratio and its interval; low <= value <= high.
struct Sample {
  double value = 0, low = 0, high = 0;
};

/// One pair of one race.
struct PairSample {
  int race = 0;
  Sample sample;
};

/// The difference b - a of two gains of one race, which holds whenever both intervals hold.
Sample difference(const Sample& a, const Sample& b);

/// What one race says over all its pairs: the medians of values and ends. Whenever every pair's interval
/// holds, this one holds the median of what is true of the pairs. `pairs` is not empty.
Sample of_race(std::span<const Sample> pairs);

/// What the races of a regime say together.
struct Pooled {
  Sample sample;
  bool disagree = false;
};
/// One race: itself. Several that agree (Cochran's Q): their mean weighted by the intervals, whose half-width
/// is theirs in quadrature. Several that do not: their median, between the ends of the outermost (of many:
/// of those that the sign test at kRecordError leaves). `races` is not empty.
Pooled pool(std::span<const Sample> races);

/// All of it; `pairs` in any order. races == 0 when there are none.
Spread spread_of(std::span<const PairSample> pairs);
/// `threshold` is a log ratio above 0.
State state_of(const Spread& spread, double threshold);

}  // namespace furlong::audit::internal
