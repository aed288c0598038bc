#pragma once
// What each knob value did to the rate in one race, other knobs equal.

#include <string>
#include <vector>

#include "furlong/race/race.h"

namespace furlong::race {

struct KnobEffect {
  std::string knob;
  std::string value;
  double gain = 0;            ///< of the rate over the knob's default (ratio - 1)
  double standard_error = 0;  ///< of gain; NaN when the fit leaves no freedom to tell
  int variants = 0;           ///< timed variants with this value
};

/// Main effects on log time by least squares over the timed variants (stats::main_effects), in knob order;
/// values that no timed variant has are left out. Times are compared as the race did, by the gain within each
/// heat, so that drift is not taken for an effect. Empty when fewer than three variants were timed. Pure.
std::vector<KnobEffect> knob_effects(const program::Instance& instance, const Outcome& outcome);

}  // namespace furlong::race
