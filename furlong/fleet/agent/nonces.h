#pragma once
// How the nonces of a machine are split among its devices.

#include <cstdint>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::fleet {

struct NonceShare {
  std::uint64_t first = 0;
  std::uint64_t count = 0;  ///< 0: all 2^64
  bool operator==(const NonceShare&) const = default;
};

/// Equal shares in order, the last with what is left over; `count` 0 is 2^64. `invalid` when a device would
/// get none.
Result<std::vector<NonceShare>> split_nonces(std::uint64_t first, std::uint64_t count, std::size_t devices);

}  // namespace furlong::fleet
