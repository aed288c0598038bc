#pragma once

#include <cmath>

namespace furlong::fleet::internal {

/// To six digits: more is noise, and 2.07 is not to read 2.0699999332427979 for having been stored in four
/// bytes.
inline double rounded(double value) {
  if (value == 0) return 0;  // a negative zero is none
  if (!std::isfinite(value)) return value;
  // Within the range where powers of ten and their products are exact enough to give the nearest double.
  const int digits = 5 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (digits > 15) return 0;
  if (digits <= 0) {
    const double scale = std::pow(10.0, -digits);
    return std::round(value / scale) * scale;
  }
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

/// To be printed with two decimals: what rounds to zero is no "-0.00".
inline double shown(double value) { return std::abs(value) < 0.005 ? 0 : value; }

}  // namespace furlong::fleet::internal
