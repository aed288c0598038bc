#pragma once

#include <cmath>

namespace furlong::fleet::internal {

/// To six digits: more is noise, and 2.07 is not to read 2.0699999332427979 for having been stored in four
/// bytes.
inline double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
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

}  // namespace furlong::fleet::internal
