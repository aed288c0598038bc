#include "furlong/shard/internal/bound_claim.h"

#include "furlong/base/os/memory.h"

namespace furlong::shard {

Result<BoundClaim> bind_claim(const std::shared_ptr<const Store>& store, std::span<const UnitIndex> units,
                              const Claim& claim) {
  BoundClaim bound;
  bound.claim = claim;
  bound.units.reserve(units.size());
  for (const UnitIndex index : units) {
    FURLONG_TRY(Unit unit, store->unit(index));
    bound.units.push_back(std::move(unit));
  }
  FURLONG_TRY(bound.items, ClaimItems::open(store, units));
  return bound;
}

Status verify_bound(const Store& store, const Executor& executor, BoundClaim& bound, const Receipt& receipt,
                    const VerifyOptions& options) {
  const Digest digest = bound.claim.digest(std::string(executor.name()), executor.version());
  if (receipt.claim != digest)
    return fail(Code::mismatch, "the receipt is of the claim {}, not {}", receipt.claim.brief(),
                digest.brief());
  return executor.verify(store.settings(), bound.claim, bound.units, *bound.items, receipt, options);
}

Result<JobResult> carry_out(const std::shared_ptr<const Store>& store, const Executor& executor,
                            std::span<const UnitIndex> units, const JobOptions& options,
                            const VerifyOptions& verifying,
                            const std::function<Status(const Receipt&)>& keep) {
  FURLONG_TRY(const Claim claim, make_claim(*store, units));
  FURLONG_TRY(BoundClaim bound, bind_claim(store, units, claim));
  const OwnMemoryWatch memory;
  FURLONG_TRY(JobResult result,
              executor.run(store->settings(), bound.claim, bound.units, *bound.items, options));
  FURLONG_CHECK_DOING(verify_bound(*store, executor, bound, result.receipt, verifying),
                      "its own receipt does not verify");
  FURLONG_CHECK(keep(result.receipt));
  if (executor.holds_claim()) {  // as job_cost() has it
    result.check.record_bytes += bound.items->held_bytes();
    result.job.record_bytes += bound.items->held_bytes();
  }
  if (result.job.peak_bytes == 0) result.job.peak_bytes = memory.peak_bytes();
  return result;
}

}  // namespace furlong::shard
