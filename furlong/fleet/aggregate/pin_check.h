#pragma once
// What some machines' own races say of the variants that a tuning pins: a pinned run times nothing, but one
// race in so many happens all the same. docs/fleet-aggregation.md, "Pins on trial".

#include <cstdint>
#include <string>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::fleet {

struct PinCheckOptions {
  std::vector<std::string> machines;  ///< their races alone; empty: nobody's
  std::int64_t since_us = 0;          ///< from when on the tuning holds
  double window_days = 7;             ///< races from so long before to so long after
  double threshold_pct = 1;           ///< slower by less is none
  int min_races = 8;                  ///< of a variant in its window; fewer are not judged
  double error = 0.05;                ///< chance that any interval misses, at either end
  unsigned threads = 0;               ///< as AggregateOptions::threads
};

/// A pinned variant that is slower than base, or than what was chosen before.
struct SlowPin {
  std::string card;  ///< key in the tuning
  Subject subject;
  std::string variant;
  Estimate gain_pct;   ///< over base in the same races, since
  std::string chosen;  ///< the variant that won most of the races before; "base": that is what it loses to
  Estimate chosen_gain_pct;  ///< before; of base 0, without an interval
  double behind_pct = 0;     ///< so far the interval lies below the other's, in points
};

struct PinCheck {
  std::vector<SlowPin> slow;  ///< the worst first
  int judged = 0;             ///< pinned rows and subjects with enough races
};

/// Rows that race, and rows for cards that none of the machines has, are not looked at. Errors of the store
/// as they are; `invalid`: options out of range.
Result<PinCheck> check_pins(const OpenStore& open, const record::Tuning& tuning,
                            const PinCheckOptions& options);

}  // namespace furlong::fleet
