#pragma once
// A plan from a profile, without executing anything: units are packed until the model, or a cap on a counter,
// says that a shard is full; or the units are cut into a fixed number of equal shards.

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/shard/model.h"
#include "furlong/shard/profile.h"
#include "furlong/shard/progress.h"

namespace furlong::shard {

/// Counters of a shard beside the profile's features. Bytes of the items that it needs, each counted once;
/// how many units it has; the sums of the units' W and record bytes.
inline constexpr std::string_view kItemBytes = "item_bytes", kUnitCount = "units", kUnitWork = "work",
                                  kUnitRecordBytes = "record_bytes";

/// Which items a unit needs. Touched ones are a part of the closure, so touch accounting never exceeds
/// closure accounting.
enum class Accounting {
  touched,  ///< those that it consulted; of a unit that nobody measured, its closure
  closure,  ///< its own, and all that can be reached from it by references
  own       ///< its own: where nobody recorded either
};
std::string_view accounting_name(Accounting accounting);
/// `touched` where the profile has it, else `closure`, else `own`.
Accounting best_accounting(const Profile& profile);

/// What a planner knows of a shard before it runs, and what models are fitted on. A unit that nobody measured
/// counts as the mean of those that somebody did. Units must be there.
Counters profile_counters(const Profile& profile, std::span<const UnitIndex> units);
Counters profile_counters(const Profile& profile, std::span<const UnitIndex> units, Accounting accounting);
/// Replaces the counters of each run by the profile's for the shard of the same number ("shard 3"). `invalid`
/// for a run whose shard the plan lacks, `mismatch` for the profile of another store.
Status use_profile(std::vector<FitRun>& runs, const Plan& plan, const Profile& profile);

struct PackRequest {
  /// Budgets; base, slopes and usable, unless the model has them. None is needed where there are caps.
  Sizing sizing;
  /// Stage 1 predicts a shard's W and record bytes; without, W is the sum of the units', as their records'
  /// bytes are.
  std::optional<Model> model;
  /// Of a shard, by counter. Each is tested by itself before a unit is accepted.
  std::map<std::string, double> caps;
  std::optional<Accounting> accounting;  ///< absent: best_accounting()
  /// Plain order, or units that need the same large items next to each other; absent: both are packed, and
  /// the better one is taken (fewer shards, then fewer cross bytes).
  std::optional<OrderKind> order;
  /// Shards that are filled at once: a unit goes where it adds fewest bytes. 1: next fit. Closure accounting
  /// always has 1.
  std::uint32_t open = 8;
  std::stop_token stop;
  Progress progress;  ///< step "pack", in units
};

struct PackOutcome {
  Plan plan;  ///< units in plain order within a shard; cost kind work with stage 1, else profile units, or
              ///< unknown
  std::vector<Counters> counters;  ///< of each shard
  std::vector<ShardId> giants;     ///< a unit each that alone is over a cap or the usable share
  std::uint32_t lower_bound = 0;   ///< no packing has fewer shards
  std::uint32_t guessed = 0;       ///< units that nobody measured
  Accounting accounting = Accounting::touched;
  std::uint32_t plain_shards = 0, sharing_shards = 0;  ///< 0: not packed
  std::uint64_t plain_cross_bytes = 0, sharing_cross_bytes = 0;
  bool cross_known = false;  ///< the profile says what units refer to; else cross bytes are 0
  std::string text() const;  ///< for people: accounting, order, bound, giants, guesses
};

/// Packs to the caps and the budgets, with each needed item's bytes counted once a shard. A unit that fits
/// into no shard by itself is a shard of its own, and reported. Units that failed are the plan's failed ones.
/// Where no unit was measured, units stay in plain order and their items' bytes stand for the record.
/// Deterministic. `invalid` names a cap or a model's feature that the profile does not count, and says when
/// there is nothing to cut by; `timeout` when stopped.
Result<PackOutcome> pack_profile(const Profile& profile, const PackRequest& request);

/// What costs_csv() takes, of a plan from a profile: predicted W, record bytes and seconds, and counters as
/// features.
std::map<ShardId, Cost> predicted_costs(const Plan& plan, std::span<const Counters> counters);

struct BalanceRequest {
  std::uint32_t shards = 0;
  double imbalance = 0.05;  ///< each shard's weight is within this share of the mean, as far as units allow
  std::uint64_t seed = 1;
  std::optional<Model> model;  ///< stage 1 predicts the shards' W
  std::stop_token stop;
};

struct BalanceOutcome {
  Plan plan;
  std::vector<Counters> counters;     ///< of each shard
  std::uint64_t objective_bytes = 0;  ///< what was minimised: the sum of the shards' cross bytes
  double lightest = 0, heaviest = 0;  ///< over the mean weight
  bool cross_known = false;
};

/// Exactly that many shards, none empty, of equal weight (W; own bytes where no unit was measured), with few
/// cross bytes: beginning from Scotch's cut (up to 100,000 units), from runs of the plain order, and of one
/// that puts units next to each other which need the same items, single units move as long as the sum of the
/// cross bytes falls; the best end is taken. Deterministic. `invalid` for no shards or more than units.
Result<BalanceOutcome> balance_profile(const Profile& profile, const BalanceRequest& request);

}  // namespace furlong::shard
