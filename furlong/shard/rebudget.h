#pragma once
// Splitting one shard of a plan that turned out too heavy, and nothing else of it.

#include <map>
#include <memory>
#include <stop_token>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/plan.h"
#include "furlong/shard/profile.h"
#include "furlong/shard/progress.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

struct RebudgetRequest {
  ShardId shard = 0;
  std::uint64_t budget_bytes = 0;  ///< of a child's job; 0: the plan's
  double budget_seconds = 0;       ///< 0: the plan's
  /// Cuts by the sum of what it recorded of the units, in place of executing them; the pieces are executed
  /// all the same, to price them. Null: none. It must live as long as the call.
  const Profile* profile = nullptr;
  std::stop_token stop;
  Progress progress;
};

struct Rebudgeted {
  Plan plan;
  std::vector<ShardId> children;  ///< the first is the shard that was split
  std::map<ShardId, Cost> costs;  ///< of the children, cold
};

/// Cuts the shard's units, in their order, under the new budget and re-prices the pieces. The first keeps the
/// shard's id, the others get new ones behind all others; every other shard is as it was, and so is its
/// claim. In the tree the leaf becomes a chain that leans left. `invalid`: no such shard, a budget that is no
/// smaller than needed to split it ("does not split, lower the budget") a plan of another
/// store, or a profile with a unit that the plan lacks;
/// `mismatch` and `exhausted` name a unit that does not fit alone. The plan that is given is never changed.
Result<Rebudgeted> rebudget(const std::shared_ptr<const Store>& store, const Executor& executor,
                            const Plan& plan, const RebudgetRequest& request);

}  // namespace furlong::shard
