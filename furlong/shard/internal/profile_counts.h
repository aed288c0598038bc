#pragma once
// The counters of shards as flat columns, for planners that look at a million units.

#include <array>
#include <span>
#include <string>
#include <vector>

#include "furlong/shard/profile_plan.h"

namespace furlong::shard::internal {

/// Columns: the profile's features, then units, work, record bytes, and item bytes, which do not add up but
/// are counted by the items. Seconds come last where the profile has them. The profile must live as long.
class CounterTable {
 public:
  explicit CounterTable(const Profile& profile);

  const std::vector<std::string>& names() const { return names_; }
  std::size_t size() const { return names_.size(); }
  std::size_t work() const { return work_; }
  std::size_t record_bytes() const { return work_ + 1; }
  std::size_t item_bytes() const { return work_ + 2; }
  /// Nothing where the profile has no seconds.
  std::optional<std::size_t> seconds() const;
  Result<std::size_t> find(std::string_view name) const;

  /// Adds a unit to totals, all but its items' bytes.
  void add(UnitIndex unit, std::span<double> totals) const;
  bool any_measured() const { return measured_ > 0; }
  std::uint32_t unknown() const { return unknown_; }
  Counters counters(std::span<const double> totals) const;

 private:
  const Profile& profile_;
  std::vector<std::string> names_;
  std::size_t work_ = 0;
  std::vector<double> means_;  // of the measured units
  std::uint32_t measured_ = 0, unknown_ = 0;
};

/// Lists the items that units need. Accounting that the profile has no graph for is the best that it has one
/// for. One thread at a time; the profile must live as long.
class NeededItems {
 public:
  NeededItems(const Profile& profile, Accounting accounting);
  Accounting accounting() const { return accounting_; }
  /// Each once; valid until the next call. In closure accounting, items for which `seen` is true are left
  /// out, with what lies behind them.
  template <class Seen>
  std::span<const std::uint32_t> of(UnitIndex unit, const Seen& seen) {
    if (accounting_ == Accounting::closure) return closure_->items(unit, seen);
    if (accounting_ == Accounting::own) return own(unit);
    if (profile_.states[unit] == UnitState::measured) return profile_.touched->of(unit);
    // What lies behind an item that somebody touched need not be there, so the walk does not stop at it.
    return closure_ ? closure_->items(unit) : own(unit);
  }
  std::span<const std::uint32_t> of(UnitIndex unit) {
    return of(unit, [](std::uint32_t) { return false; });
  }

 private:
  std::span<const std::uint32_t> own(UnitIndex unit);

  const Profile& profile_;
  const Accounting accounting_;
  std::optional<Closure> closure_;
  std::vector<std::uint32_t> own_;
};

/// Predicts what a shard takes, and whether it is full. Cheap: asked for each unit and each open shard.
class Limits {
 public:
  static Result<Limits> make(const CounterTable& table, const PackRequest& request);

  Cost predict(std::span<const double> totals) const;
  /// Within each cap, and below the cut of the budgets.
  bool fit(std::span<const double> totals) const;
  /// How full it is: the largest share of a cap or a budget that is used.
  double fill(std::span<const double> totals) const;
  /// The least number of shards that these totals can be spread over. Costs are convex in each counter and
  /// items are counted once here, so where all shards fit, a shard of the mean counters fits as well.
  std::uint32_t lower_bound(std::span<const double> totals, std::uint32_t most) const;
  const Sizing& sizing() const { return sizing_; }
  /// Whether W is predicted by stage 1.
  bool predicts() const { return work_.has_value(); }

 private:
  struct FlatTerm {
    std::size_t column;
    Term term;
  };
  struct FlatSum {
    double base = 0;
    std::vector<FlatTerm> terms;
    double at(std::span<const double> totals) const;
  };
  static Result<FlatSum> flatten(const CounterTable& table, const TermSum& sum, std::string_view what);

  Sizing sizing_;
  std::vector<std::pair<std::size_t, double>> caps_;
  std::optional<FlatSum> work_, record_;
  std::size_t work_column_ = 0, record_column_ = 0;
  std::optional<std::size_t> seconds_column_;
};

/// Units that need the same large items next to each other, for about so many shards: each goes with the
/// foreign item by which a shard saves most, that is bytes times the copies that it would else be in. An item
/// that everybody needs is in every shard either way and tells nothing; one that few need is. The profile
/// must have references or touched items.
std::vector<UnitIndex> order_by_items(const Profile& profile, std::span<const UnitIndex> order,
                                      std::uint32_t shards);

/// Cost, seconds and record of a shard as Limits predicts them; kind as PackOutcome says.
void set_cost(PlanShard& shard, const Cost& cost, bool predicted, bool measured);

}  // namespace furlong::shard::internal
