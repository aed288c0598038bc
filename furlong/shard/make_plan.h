#pragma once
// From a store to a plan: order, fit, scan, re-price, merge.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "furlong/shard/executor.h"
#include "furlong/shard/merge.h"
#include "furlong/shard/order.h"
#include "furlong/shard/plan.h"
#include "furlong/shard/scan.h"

namespace furlong::shard {

/// Executes the job of some units and tells what it cost; peak_bytes of the process that ran it must be
/// known.
using PrefixJob = std::function<Result<Cost>(std::span<const UnitIndex>)>;
/// In this process: its peak is what an executor that does not measure its own leaves to be seen, all of this
/// process's memory while the job ran.
PrefixJob prefix_job_here(std::shared_ptr<const Store> store, const Executor& executor, std::stop_token stop);

/// One measured prefix.
struct PrefixCost {
  std::uint32_t units = 0;
  double work = 0;
  std::uint64_t record_bytes = 0, peak_bytes = 0;
};
struct PrefixFit {
  std::vector<PrefixCost> prefixes;
  std::uint64_t base_bytes = 0;
  double ram_per_work = 0;
  std::string text() const;  ///< for people: what was run and what came out
};
/// Fits peak - record bytes = base + ram_per_work * W. Never a negative coefficient: where the line would
/// have one, the highest point is the base and ram_per_work is 0, or the line goes through nothing.
PrefixFit fit_prefixes(std::vector<PrefixCost> prefixes);
/// Runs the jobs of three prefixes of the order: a quarter, a half and all of the units whose record fills an
/// eighth of the budget. Known from the journal, or added to it. Units that fail are left out.
Result<PrefixFit> measure_prefixes(const std::shared_ptr<const Store>& store, const Executor& executor,
                                   std::span<const UnitIndex> order, const Sizing& sizing,
                                   const PrefixJob& job, Journal& journal, std::stop_token stop);

struct PlanRequest {
  /// Without `fitted`, base and ram_per_work are measured first. Without a record cap, one follows from the
  /// budget of memory: what the base leaves of it.
  Sizing sizing;
  CostKind cost_kind = CostKind::work;
  std::optional<OrderKind> order;  ///< absent: the better one
  std::uint64_t seed = 1;
  unsigned workers = 1;         ///< 0: choose_workers()
  std::uint64_t box_bytes = 0;  ///< memory that they share; 0: this machine's
  bool fail_fast = true;
  bool merge = true;
  std::uint32_t chunk_units = 0;  ///< ScanOptions
  std::uint32_t limit_units = 0;  ///< FURLONG_SCAN_LIMIT_UNITS: the first of the plain order; 0: all
  std::filesystem::path journal;  ///< empty: none is kept
  PrefixJob prefix_job;           ///< empty: prefix_job_here()
  std::stop_token stop;
  Progress progress;
};

struct PlanOutcome {
  Plan plan;
  std::map<ShardId, Cost> costs;
  bool complete = true;  ///< false: stopped at a unit that failed; the plan then has `failed` and no shards
  std::vector<ShardId> alone;  ///< a unit over the cut each
  OrderChoice order;           ///< measures are 0 where none were made
  std::optional<PrefixFit> fit;
  MergeReport merging;
  double scan_seconds = 0, fill_seconds = 0, price_seconds = 0, merge_seconds = 0;  ///< wall time
  std::size_t segments = 0;                                                         ///< before merging
  unsigned workers = 1;
  std::string workers_text;  ///< how many, and why
};

/// The same store, request and journal give the same plan, byte for byte.
Result<PlanOutcome> make_plan(std::shared_ptr<const Store> store, const Executor& executor,
                              const PlanRequest& request);

/// What each shard and the whole have in bytes, and the tree: the parts of a plan that follow from its units.
/// Shards must have their id, units and cost; own_bytes, cross_bytes, foreign and tree are set.
void complete_plan(Plan& plan, const Sharing& sharing);

}  // namespace furlong::shard
