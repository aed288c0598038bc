#include "furlong/shard/rebudget.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/shard/order.h"
#include "furlong/shard/scan.h"

namespace furlong::shard {
namespace {

Result<Sizing> sizing_of(const Plan& plan, const RebudgetRequest& request) {
  Sizing sizing = plan.sizing;
  if (request.budget_bytes != 0) sizing.budget_bytes = request.budget_bytes;
  if (request.budget_seconds > 0) sizing.budget_seconds = request.budget_seconds;
  FURLONG_CHECK(sizing.check());
  // The cap was sized by the old budget; a record beyond the new one would be cut anyway.
  if (sizing.record_cap_bytes != 0 && sizing.budget_bytes != 0)
    sizing.record_cap_bytes = std::min(sizing.record_cap_bytes, sizing.budget_bytes - sizing.base_bytes);
  return sizing;
}

// K becomes K, n, join, n+1, join …
AggregationTree chained(const AggregationTree& tree, std::span<const ShardId> children) {
  AggregationTree result;
  for (const std::uint32_t node : tree) {
    result.push_back(node);
    if (node != children.front()) continue;
    for (const ShardId child : children.subspan(1)) {
      result.push_back(child);
      result.push_back(kJoin);
    }
  }
  return result;
}

// What may not differ: every shard but the one that was split.
Status same_others(const Plan& before, const Plan& after, ShardId split) {
  for (const PlanShard& shard : before.shards) {
    if (shard.id == split) continue;
    const PlanShard* kept = after.find(shard.id);
    if (kept == nullptr || *kept != shard)
      return fail(Code::internal, "shard {} would have changed; nothing is written", shard.id);
  }
  return {};
}

// A profile that knows units which the plan does not is of something else than what was planned.
Status same_units(const Profile& profile, const Plan& plan) {
  if (profile.store != plan.store)
    return fail(Code::invalid, "the profile is of the store {}, the plan of {}", profile.store.brief(),
                plan.store.brief());
  std::vector<char> there(profile.units());
  const auto mark = [&](UnitIndex unit) {
    if (unit < there.size()) there[unit] = 1;
  };
  for (const PlanShard& shard : plan.shards)
    for (const UnitIndex unit : shard.units) mark(unit);
  for (const FailedUnit& failed : plan.failed) mark(failed.unit);
  for (UnitIndex unit = 0; unit < profile.units(); ++unit)
    if (there[unit] == 0)
      return fail(Code::invalid, "the profile has the unit '{}', which the plan lacks",
                  one_line(profile.names[unit]));
  return {};
}

// A piece ends before the unit with which the sum of what was recorded would reach the cut.
Result<std::vector<Segment>> cut_by_profile(const Profile& profile, std::span<const UnitIndex> units,
                                            const Sizing& sizing) {
  std::vector<Segment> segments;
  for (const UnitIndex unit : units) {
    if (profile.states[unit] != UnitState::measured)
      return fail(Code::invalid, "the profile does not say what the unit '{}' costs",
                  one_line(profile.names[unit]));
    Cost own;
    own.work = profile.work[unit];
    own.record_bytes = profile.record_bytes[unit];
    if (profile.seconds) own.seconds = (*profile.seconds)[unit];
    if (sizing.over_budget(own))
      return fail(Code::exhausted, "unit '{}': alone it is over the budget; the plan stays as it is",
                  one_line(profile.names[unit]));
    Cost joined = own;
    if (!segments.empty()) {
      joined.work += segments.back().cost.work;
      joined.record_bytes += segments.back().cost.record_bytes;
      joined.seconds += segments.back().cost.seconds;
    }
    if (segments.empty() || sizing.reaches_cut(joined)) {
      segments.emplace_back();
      joined = own;
    }
    segments.back().units.push_back(unit);
    segments.back().cost = joined;
  }
  return segments;
}

}  // namespace

Result<Rebudgeted> rebudget(const std::shared_ptr<const Store>& store, const Executor& executor,
                            const Plan& plan, const RebudgetRequest& request) {
  FURLONG_CHECK(coverage(plan, *store));
  const PlanShard* const split = plan.find(request.shard);
  if (split == nullptr)
    return fail(Code::invalid, "the plan has no shard {}: it has {} of them", request.shard,
                plan.shards.size());
  if (!plan.sizing.fitted && request.budget_bytes != 0 && !executor.independent())
    return fail(
        Code::invalid,
        "the plan does not know what a job takes besides its record, so no budget of memory can be kept: "
        "plan anew with a model (furlong shard fit) or without a profile");
  FURLONG_TRY(const Sizing sizing, sizing_of(plan, request));

  Journal journal;
  ScanOptions options;
  options.sizing = sizing;
  options.chunk_units = static_cast<std::uint32_t>(split->units.size());
  options.stop = request.stop;
  options.progress = request.progress;
  ScanResult scanned;
  if (request.profile != nullptr) {
    FURLONG_CHECK(same_units(*request.profile, plan));
    FURLONG_TRY(scanned.segments, cut_by_profile(*request.profile, split->units, sizing));
  } else {
    FURLONG_TRY(scanned, scan(store, executor, split->units, options, journal));
  }
  if (!scanned.complete) {
    const FailedUnit& failed = scanned.failed.front();
    FURLONG_TRY(const Unit unit, store->unit(failed.unit));
    return fail(failed.code, "unit '{}': {}; the plan stays as it is", one_line(unit.name), failed.why);
  }
  if (scanned.segments.size() < 2)
    return fail(Code::invalid, "shard {} does not split under this budget: lower the budget", request.shard);

  FURLONG_TRY(const Sharing sharing, Sharing::read(*store, request.stop, request.progress));
  Rebudgeted result;
  result.plan = plan;
  ShardId next = 0;
  for (const PlanShard& shard : plan.shards) next = std::max(next, shard.id + 1);
  std::vector<PlanShard> children;
  for (Segment& segment : scanned.segments) {
    FURLONG_TRY(const auto cost, price(store, executor, segment.units, sizing, false, journal, request.stop));
    PlanShard child;
    child.id = children.empty() ? request.shard : next++;
    child.cost_kind = split->cost_kind == CostKind::unknown ? executor.cost_kind() : split->cost_kind;
    child.cost = child.cost_kind == CostKind::command_seconds ? cost->seconds : cost->work;
    child.record_bytes = cost->record_bytes;
    child.seconds = cost->seconds;
    child.units = std::move(segment.units);
    child.own_bytes = sharing.own_bytes(child.units);
    const Sharing::Cross cross = sharing.cross(child.units);
    child.cross_bytes = cross.bytes;
    child.foreign = cross.items;
    result.children.push_back(child.id);
    result.costs[child.id] = *cost;
    children.push_back(std::move(child));
  }
  for (PlanShard& shard : result.plan.shards)
    if (shard.id == request.shard) shard = children.front();
  result.plan.shards.insert(result.plan.shards.end(), std::make_move_iterator(children.begin() + 1),
                            std::make_move_iterator(children.end()));
  result.plan.tree = chained(plan.tree, result.children);
  FURLONG_CHECK(same_others(plan, result.plan, request.shard));
  std::vector<ShardId> ids;
  for (const PlanShard& shard : result.plan.shards) ids.push_back(shard.id);
  FURLONG_CHECK(check_tree(result.plan.tree, ids));
  return result;
}

}  // namespace furlong::shard
