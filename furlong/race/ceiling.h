#pragma once
// How near a variant comes to what the device can do at best.

#include <optional>
#include <string>

#include "furlong/device/ceilings.h"
#include "furlong/race/race.h"

namespace furlong::race {

/// What the device's measured ceilings allow for the program's work.
struct Ceiling {
  double rate = 0;  ///< units per second
  std::string of;   ///< the limit that gives it: "random 4-byte loads"
};

/// The lowest of the rates that the limits allow: random loads at their dataset's size (times of several
/// widths add up), else streamed bytes at the size of what a launch moves; single-precision operations;
/// 32-bit integer operations. nullopt where the program tells nothing of its work, or where its memory is
/// smaller than the smallest that was measured. Pure.
std::optional<Ceiling> ceiling_of(const program::Instance::Work& work, const device::Ceilings& ceilings);

/// Gives every variant that has a rate its share, and notes nothing where there is no ceiling.
void add_shares(const program::Instance& instance, const device::Ceilings& ceilings, Outcome& outcome);

/// From this share on nothing is left to win.
inline constexpr double at_ceiling = 0.97;

}  // namespace furlong::race
