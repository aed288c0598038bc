#pragma once
// IEEE 754 binary16, for compilers without a type for it.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace furlong::program::internal {

/// Exact.
inline double half_to_double(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  double magnitude = 0;
  if (exponent == 31)
    magnitude = mantissa == 0 ? HUGE_VAL : std::nan("");
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, -24);
  else
    magnitude = std::ldexp(mantissa + 1024, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Rounded to nearest, ties to even; too large becomes infinity.
inline std::uint16_t half_from_double(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520) return sign | 0x7C00;  // halfway past the largest, 65504
  int exponent = 0;
  std::frexp(magnitude, &exponent);                // magnitude = f · 2^exponent, 0.5 <= f < 1
  const int scale = std::max(exponent - 11, -24);  // weight of the last bit; subnormals stop at 2^-24
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -scale)));  // at most 2^11
  if (units < 1024) return static_cast<std::uint16_t>(sign | units);                   // zero and subnormals
  // units in [1024, 2048]: at 2048 the sum carries into the exponent, as it should.
  return static_cast<std::uint16_t>(sign | (((scale + 24) << 10) + units));
}

}  // namespace furlong::program::internal
