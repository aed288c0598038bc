#pragma once
// The cache, and the rows of the dataset that are computed from it (docs/formats/lottery.md, "Dataset").

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "furlong/program/lottery/specification.h"

namespace furlong::program::lottery {

using Row = std::array<std::uint32_t, kRowWords>;

/// The lines that every dataset row is computed from. Filled one after another from the epoch seed and the
/// day; 16 MiB take about 0.03 s. Immutable; thread safe.
class Cache {
 public:
  /// `lines` >= 1.
  Cache(const Parameters& parameters, std::uint32_t lines);

  std::span<const Row> lines() const { return lines_; }
  /// Row `index` of the dataset, whatever the dataset's size: a larger one has the same first rows.
  Row dataset_row(std::uint32_t index) const;

 private:
  std::vector<Row> lines_;
};

/// Fills `into` (a multiple of 64 bytes) with the dataset's first rows, little-endian words, with `threads`
/// threads (at least 1). `invalid` for another size, `timeout` when stopped: `into` is then incomplete.
Status fill_dataset(const Cache& cache, std::span<std::uint8_t> into, int threads, std::stop_token stop);

}  // namespace furlong::program::lottery
