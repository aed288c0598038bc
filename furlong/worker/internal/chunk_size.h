#pragma once
// How many nonces a chunk has, so that it takes about as long as asked.

#include <algorithm>
#include <cstdint>

namespace furlong::worker {

/// Nonces of the next chunk after one of `nonces` that took `took_ms`; whole launches where it is more than
/// one. Changes at most fourfold, so that one odd chunk does not throw it far. Pure.
inline std::uint64_t next_chunk(std::uint64_t nonces, double took_ms, double chunk_ms,
                                std::uint64_t launch_nonces) {
  constexpr double kStep = 4;
  constexpr std::uint64_t kFewest = 256;
  const double factor = took_ms > 0 ? std::clamp(chunk_ms / took_ms, 1 / kStep, kStep) : kStep;
  const double wanted = std::min(factor * static_cast<double>(nonces), 0x1p40);
  const auto count = std::max(static_cast<std::uint64_t>(wanted), kFewest);
  if (count < launch_nonces) return count;
  return count / launch_nonces * launch_nonces;
}

}  // namespace furlong::worker
