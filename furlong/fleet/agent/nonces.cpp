#include "furlong/fleet/agent/nonces.h"

namespace furlong::fleet {

Result<std::vector<NonceShare>> split_nonces(std::uint64_t first, std::uint64_t count, std::size_t devices) {
  const std::uint64_t parts = devices;
  if (parts == 0) return fail(Code::internal, "nonces for no device");
  if (parts == 1) return std::vector<NonceShare>{{.first = first, .count = count}};
  // 2^64 / parts, rounded down, without 2^64.
  const std::uint64_t share =
      count == 0 ? UINT64_MAX / parts + (UINT64_MAX % parts == parts - 1 ? 1 : 0) : count / parts;
  if (share == 0)  // which a worker would take for all 2^64
    return fail(Code::invalid, "nonce_count: {} nonces for {} devices: each needs one at least", count,
                parts);
  std::vector<NonceShare> shares;
  for (std::uint64_t i = 0; i + 1 < parts; ++i)
    shares.push_back({.first = first + i * share, .count = share});
  const std::uint64_t given = (parts - 1) * share;
  shares.push_back({.first = first + given, .count = count - given});  // modulo 2^64, also of 2^64 itself
  return shares;
}

}  // namespace furlong::fleet
