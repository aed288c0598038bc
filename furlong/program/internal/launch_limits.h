#pragma once
// What any launch must keep to, whoever makes it.

#include <array>
#include <cstdint>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong::program::internal {

inline constexpr std::int64_t largest_dimension = std::int64_t{1} << 31;
inline constexpr std::int64_t largest_shared_bytes = std::int64_t{1} << 31;

/// `invalid` when the three multiplied pass 64 bits.
inline Status check_product(const std::array<std::uint64_t, 3>& dimensions, std::string_view what) {
  std::uint64_t product = 1;
  for (const std::uint64_t one : dimensions)
    if (__builtin_mul_overflow(product, one, &product))
      return fail(Code::invalid, "{}: {} x {} x {} is more than 64 bits can say", what, dimensions[0],
                  dimensions[1], dimensions[2]);
  return {};
}

}  // namespace furlong::program::internal
