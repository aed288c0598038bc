#pragma once
// Noise as the recorded cards have it, drawn from quantiles (noise_table.h). All in percent.

#include <cmath>
#include <cstdint>
#include <span>

#include "furlong/base/random.h"
#include "furlong/fleet/simulate/internal/noise_table.h"

namespace furlong::fleet::internal {

/// The quantile at u in [0, 1).
inline double quantile(std::span<const float> table, double u) {
  const double at = u * static_cast<double>(table.size() - 1);
  const auto step = static_cast<std::size_t>(at);
  return table[step] + (at - static_cast<double>(step)) * (table[step + 1] - table[step]);
}

inline double draw(std::span<const float> table, Random& random) { return quantile(table, random.uniform()); }

/// Bits that depend on both, for streams that hang on numbers.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t state = a ^ (b * 0xD6E8FEB86659FD93ull);
  return splitmix64(state);
}

constexpr double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

/// The noise of a race falls with the root of its heats (bench/fleet_noise.py --spread).
inline double heats_factor(int heats) { return std::sqrt(static_cast<double>(race_table_heats) / heats); }

/// Half the width of an interval around a race's gain that holds the truth about 97 times in 100 and, as a
/// confidence sequence must, is wider than one for a number of heats fixed beforehand.
inline double half_width_pct(double noise, int heats) {
  return 1.25 * quantile(race_noise_pct, 0.975) * noise * heats_factor(heats);
}

}  // namespace furlong::fleet::internal
