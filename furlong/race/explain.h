#pragma once
// Why the winner won, in two sentences.

#include <optional>
#include <string>

#include "furlong/race/race.h"

namespace furlong::race {

/// What the card's measured ceilings allow for the program's work, in units per second, and which of them it
/// is
/// ("random 4-byte loads"); given by the caller, who has measured them.
struct Ceiling {
  double rate = 0;
  std::string of;
};

/// Two sentences: the knob values in which the winner differs from base with what they did, and their
/// trade-off sentences with their evidence; or that it is a dead heat and why. With a ceiling that base has
/// reached within 3% it says that nothing is left to win. Pure.
std::string explain(const program::Instance& instance, const Outcome& outcome,
                    const std::optional<Ceiling>& ceiling = std::nullopt);

}  // namespace furlong::race
