#pragma once
// A claim as its job and its verification see it, rebuilt from the store alone; and the whole of a job.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

struct BoundClaim {
  Claim claim;
  std::vector<Unit> units;  ///< in the order of execution
  std::unique_ptr<ClaimItems> items;
};
/// `claim`: make_claim() of these units.
Result<BoundClaim> bind_claim(const std::shared_ptr<const Store>& store, std::span<const UnitIndex> units,
                              const Claim& claim);

/// That the receipt is of this claim, and the executor's own verdict.
Status verify_bound(const Store& store, const Executor& executor, BoundClaim& bound, const Receipt& receipt,
                    const VerifyOptions& options);

/// A job from its claim to its receipt: executed, verified, handed to `keep`. What it takes is what its
/// process takes for all of that, unless the executor knows better; the claim that it holds counts as filled
/// memory where the executor says so.
Result<JobResult> carry_out(const std::shared_ptr<const Store>& store, const Executor& executor,
                            std::span<const UnitIndex> units, const JobOptions& options,
                            const VerifyOptions& verifying,
                            const std::function<Status(const Receipt&)>& keep);

}  // namespace furlong::shard
