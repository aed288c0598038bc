#pragma once
// The plan: which shard executes which units, what each costs, and in which order receipts are combined.
// docs/formats/plan.md.

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/shard/store.h"
#include "furlong/shard/types.h"

namespace furlong::shard {

inline constexpr int kPlanVersion = 2;
using ShardId = std::uint32_t;

/// How costs become memory and time: the job of a record of work W and B filled bytes takes at its peak
/// base_bytes + ram_per_work * W + B bytes, and base_seconds + seconds_per_work * W seconds.
struct Sizing {
  std::uint64_t budget_bytes = 0;      ///< of a job's peak; 0: none
  double budget_seconds = 0;           ///< of a job; 0: none
  std::uint64_t record_cap_bytes = 0;  ///< 0: none
  double usable = 0.75;                ///< share of the budgets that the cut may use, in (0, 1]
  std::uint64_t base_bytes = 0;
  double ram_per_work = 0;  ///< bytes
  double base_seconds = 0;
  double seconds_per_work = 0;  ///< 0: not fitted, the check's own seconds stand for the job's
  bool fitted = false;          ///< whether base and ram_per_work were measured
  bool operator==(const Sizing&) const = default;

  double predicted_bytes(const Cost& cost) const;
  double predicted_seconds(const Cost& cost) const;
  /// predicted_bytes() as a number of bytes; the largest one where it is more than that.
  std::uint64_t predicted_peak_bytes(const Cost& cost) const;
  /// The cut is reached: more than the usable share of a budget, base included, is filled.
  bool reaches_cut(const Cost& cost) const;
  bool over_budget(const Cost& cost) const;
  /// `invalid` with what no plan can be made under (a budget below the base, usable out of range).
  Status check() const;
};

struct PlanShard {
  ShardId id = 0;
  CostKind cost_kind = CostKind::unknown;
  double cost = 0;                 ///< of the cold check; 0 when unknown
  std::uint64_t record_bytes = 0;  ///< of the cold check; 0: unknown
  double seconds = 0;              ///< of the cold check; 0: unknown
  std::uint64_t own_bytes = 0;     ///< of the items that its units own
  std::uint64_t cross_bytes = 0;   ///< of the items that they refer to and do not own
  std::uint32_t foreign = 0;       ///< how many those are
  std::vector<UnitIndex> units;    ///< in the order of their execution
  bool operator==(const PlanShard&) const = default;
};

/// What the plan tells of a shard's cost, for Sizing's predictions.
Cost known_cost(const PlanShard& shard);

/// A unit that no shard has, and why. `why` is the executor's text or the cap's.
struct FailedUnit {
  UnitIndex unit = 0;
  Code code = Code::mismatch;  ///< mismatch: rejected, exhausted: over the cap or the budget
  std::string why;
  bool operator==(const FailedUnit&) const = default;
};

/// The order in which receipts are combined: in postfix, a shard's id or kJoin, which joins the two before.
using AggregationTree = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kJoin = 0xFFFFFFFF;
/// Balanced, over the ids in the given order; empty for none.
AggregationTree balanced_tree(std::span<const ShardId> ids);
/// `invalid` with the leaf that is missing, there twice or no shard's, or with where it is no one tree.
Status check_tree(const AggregationTree& tree, std::span<const ShardId> ids);

struct Plan {
  Digest store;
  std::string executor;
  int executor_version = 0;
  Sizing sizing;
  std::string order;        ///< "plain", "sharing", or the mode that made the shards
  std::uint64_t seed = 0;   ///< of the order
  std::uint32_t slice = 0;  ///< units that were looked at, when it was not all of them; else 0
  Digest journal;           ///< Journal::digest, zeros: none
  std::vector<PlanShard> shards;
  std::vector<FailedUnit> failed;  ///< by unit
  AggregationTree tree;
  bool operator==(const Plan&) const = default;

  /// Null when there is none.
  const PlanShard* find(ShardId id) const;
};

/// Deterministic. The plan must be well formed (parse_plan would read it).
std::string print_plan(const Plan& plan);
/// `name` is the file's. `invalid`: not a plan, or one that contradicts itself; `corrupt`: torn or flipped,
/// with the byte; `incompatible`: another version (found, expected, regenerate) or an unknown tag.
Result<Plan> parse_plan(std::string_view bytes, const std::string& name);
Result<Plan> read_plan(Files& files, const std::filesystem::path& file);
Status write_plan(Files& files, const std::filesystem::path& file, const Plan& plan);

/// Whether each unit of the store is in exactly one shard of the plan, and what is not.
struct Coverage {
  std::vector<UnitIndex> failed;   ///< in no shard since they failed; sorted, as all of these
  std::vector<UnitIndex> missing;  ///< in no shard for no told reason
  std::vector<UnitIndex> twice;    ///< in more than one, or in one and failed
  std::vector<UnitIndex> foreign;  ///< numbers that no unit of the store has
  std::uint32_t slice = 0;         ///< Plan::slice
  bool complete() const {
    return slice == 0 && failed.empty() && missing.empty() && twice.empty() && foreign.empty();
  }
};
/// `mismatch` for the plan of another store, `incompatible` of another executor or version of it.
Result<Coverage> coverage(const Plan& plan, const Store& store);
/// The gate: `invalid` names the units (the first `most` of each kind, and how many more there are).
Status require_coverage(const Plan& plan, const Store& store, std::size_t most = 20);

/// One line a shard, with every feature of its cold check as a column; for people and for fitting.
/// `costs` has an entry for each shard that was measured.
std::string costs_csv(const Plan& plan, const std::map<ShardId, Cost>& costs);
struct CostRow {
  ShardId shard = 0;
  std::uint32_t units = 0;
  Cost cost;
};
Result<std::vector<CostRow>> parse_costs_csv(std::string_view text, const std::string& name);

/// The failed units with their names, sorted by name, escaped as RFC 4180 says.
Result<std::string> failed_csv(std::span<const FailedUnit> failed, const Store& store);

/// "OUT.fsp" -> "OUT.costs.csv", "OUT.failed.csv".
std::filesystem::path beside_plan(const std::filesystem::path& plan, std::string_view what);

}  // namespace furlong::shard
