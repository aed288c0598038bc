#pragma once
// The body of a receipt: one row per distinct step of a claim, under a Merkle root (docs/formats/
// metamath-certificate.md). Written from a record's tables; read and judged by certificate_check.h, which
// knows nothing of them.

#include <span>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/shard/executor/metamath/internal/record.h"

namespace furlong::shard::metamath {

/// The same root as shard::merkle_root() over the same leaves, in memory that grows with their logarithm.
class MerkleStream {
 public:
  void add(const Digest& leaf);
  /// Of at least one leaf.
  Digest root() const;

 private:
  std::vector<Digest> pending_;  // roots of full trees, the largest first
  std::uint64_t count_ = 0;
};

/// `units` as they were added to the record, whose rows are all of them.
Result<Bytes> write_certificate(const MetamathRecord& record, std::span<const Unit> units,
                                const std::stop_token& stop);

}  // namespace furlong::shard::metamath
