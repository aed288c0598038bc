#pragma once
// The variants that no other is better than in every respect.

#include <cstddef>
#include <vector>

#include "furlong/race/race.h"

namespace furlong::race {

/// Indices of the timed variants that are not dominated over rate, energy per unit, registers, spilled bytes,
/// memory and error, fastest first. One dominates another when it is nowhere worse and somewhere better,
/// where both are known; gains count as equal within `tie` (log ratio), since the race does not tell closer
/// ones apart. Copies of another variant's code are left out. Pure.
std::vector<std::size_t> pareto_front(const Outcome& outcome, double tie = 0.001);

}  // namespace furlong::race
