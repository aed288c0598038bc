#pragma once
// Merging of shards by their re-priced cost: the sum of two costs bounds the merged one from neither side
// (n log n grows faster, what both share is filled once), so every merge is executed before it counts.

#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/journal.h"
#include "furlong/shard/order.h"
#include "furlong/shard/plan.h"
#include "furlong/shard/progress.h"

namespace furlong::shard {

struct PricedShard {
  std::vector<UnitIndex> units;  ///< in the order of execution
  Cost cost;                     ///< cold
  bool alone = false;            ///< a unit over the cut: never merged
};

struct PriceOptions {
  Sizing sizing;
  unsigned workers = 1;
  std::stop_token stop;
  Progress progress;
};

/// Each shard's cold cost, as price() has it.
Status price_shards(const std::shared_ptr<const Store>& store, const Executor& executor,
                    std::vector<PricedShard>& shards, const PriceOptions& options, Journal& journal);

/// A pass tries as many pairs as are disjoint, those of the next pass follow from what fitted. It is as good
/// as always over earlier: no pair is tried twice, and each pass either merges or uses up pairs.
inline constexpr int kMostMergePasses = 64;
/// Pairs whose costs together would take more than this share of the usable headroom are not tried, where
/// units' costs depend on each other; where they do not, the joined cost is known, and those that fit are.
inline constexpr double kMergeSumLimit = 1.5;
/// After as many refusals in a row no more pairs are tried: each costs as much as a scan of what it joins.
inline constexpr std::uint32_t kMostRefusals = 32;
/// Besides its neighbours a shard is tried with as many others, those that share most bytes with it.
inline constexpr std::size_t kMergePartners = 4;

struct MergeReport {
  int passes = 0;
  std::uint32_t attempts = 0, merged = 0, refused = 0;
  bool fixpoint = false;  ///< no untried pair is left
};

/// Merges neighbours, and pairs that share bytes, while the merged shard's cold cost stays below the cut.
/// `shards` are in the order of `order`, which also orders a merged shard's units. On an Error, also when
/// stopped, they are as after the last merge that fitted: a pair that does not fit stays as it was.
Result<MergeReport> merge(const std::shared_ptr<const Store>& store, const Executor& executor,
                          const Sharing& sharing, std::span<const UnitIndex> order,
                          std::vector<PricedShard>& shards, const PriceOptions& options, Journal& journal);

}  // namespace furlong::shard
