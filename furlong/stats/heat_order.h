#pragma once
// The order of the windows in one heat.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace furlong::stats {

/// `survivors` (base, index 0, among them or not) in an order shuffled from the seed and the heat's number,
/// base twice. Shuffling anew in every heat turns drift within a heat into noise of mean zero. The same
/// arguments give the same order on every machine. Pure.
std::vector<std::size_t> heat_order(std::span<const std::size_t> survivors, std::uint64_t heat,
                                    std::uint64_t seed);

}  // namespace furlong::stats
