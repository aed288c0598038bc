#pragma once
// Why the winner won, in two sentences.

#include <string>

#include "furlong/race/race.h"

namespace furlong::race {

/// Two sentences: the knob values in which the winner differs from base with what they did, and their
/// trade-off sentences with their evidence; or that it is a dead heat and why. Where the best share of the
/// device's ceiling (VariantOutcome::share_of_ceiling) is 97% or more it says that nothing is left to win.
/// Pure.
std::string explain(const program::Instance& instance, const Outcome& outcome);

}  // namespace furlong::race
