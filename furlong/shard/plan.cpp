#include "furlong/shard/plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "furlong/base/text.h"
#include "furlong/shard/internal/csv.h"

namespace furlong::shard {

Cost known_cost(const PlanShard& shard) {
  Cost cost;
  // Seconds are no W, and of an unknown kind nothing is known.
  const bool work = shard.cost_kind == CostKind::work || shard.cost_kind == CostKind::profile_units;
  cost.work = work ? shard.cost : 0;
  cost.record_bytes = shard.record_bytes;
  cost.seconds = shard.seconds;
  return cost;
}

double Sizing::predicted_bytes(const Cost& cost) const {
  return static_cast<double>(base_bytes) + ram_per_work * cost.work + static_cast<double>(cost.record_bytes);
}

std::uint64_t Sizing::predicted_peak_bytes(const Cost& cost) const {
  constexpr double kMost = 9.2e18;  // below 2^63
  const double bytes = std::ceil(predicted_bytes(cost));
  return bytes < kMost ? static_cast<std::uint64_t>(std::max(0.0, bytes)) : static_cast<std::uint64_t>(kMost);
}

double Sizing::predicted_seconds(const Cost& cost) const {
  return seconds_per_work > 0 ? base_seconds + seconds_per_work * cost.work : base_seconds + cost.seconds;
}

bool Sizing::reaches_cut(const Cost& cost) const {
  return (budget_bytes != 0 && predicted_bytes(cost) >= usable * static_cast<double>(budget_bytes)) ||
         (budget_seconds > 0 && predicted_seconds(cost) >= usable * budget_seconds);
}

bool Sizing::over_budget(const Cost& cost) const {
  return (budget_bytes != 0 && predicted_bytes(cost) > static_cast<double>(budget_bytes)) ||
         (budget_seconds > 0 && predicted_seconds(cost) > budget_seconds);
}

Status Sizing::check() const {
  if (!(usable > 0 && usable <= 1))
    return fail(Code::invalid, "the usable share must be above 0 and at most 1, not {}", usable);
  if (budget_bytes == 0 && budget_seconds <= 0)
    return fail(Code::invalid, "there is no budget to cut by: give memory, time or both");
  if (budget_bytes != 0 && usable * static_cast<double>(budget_bytes) <= static_cast<double>(base_bytes))
    return fail(
        Code::invalid,
        "a job takes {} before its first unit, and the usable {:.0f}% of the budget of {} are no more: "
        "give a larger budget",
        human_bytes(base_bytes), usable * 100, human_bytes(budget_bytes));
  if (budget_seconds > 0 && usable * budget_seconds <= base_seconds)
    return fail(
        Code::invalid,
        "a job takes {:.3g} s before its first unit, and the usable {:.0f}% of the budget of {:.3g} s are "
        "no more: give a larger budget",
        base_seconds, usable * 100, budget_seconds);
  return {};
}

AggregationTree balanced_tree(std::span<const ShardId> ids) {
  if (ids.size() <= 1) return {ids.begin(), ids.end()};
  AggregationTree tree = balanced_tree(ids.first((ids.size() + 1) / 2));
  const AggregationTree right = balanced_tree(ids.subspan((ids.size() + 1) / 2));
  tree.insert(tree.end(), right.begin(), right.end());
  tree.push_back(kJoin);
  return tree;
}

Status check_tree(const AggregationTree& tree, std::span<const ShardId> ids) {
  const std::set<ShardId> wanted(ids.begin(), ids.end());
  std::set<ShardId> seen;
  std::size_t open = 0;  // trees that wait for a join
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree[i] == kJoin) {
      if (open < 2) return fail(Code::invalid, "the aggregation tree: node {} joins what is not there", i);
      --open;
      continue;
    }
    if (!wanted.contains(tree[i]))
      return fail(Code::invalid, "the aggregation tree has the leaf {}, which is no shard", tree[i]);
    if (!seen.insert(tree[i]).second)
      return fail(Code::invalid, "the aggregation tree has the leaf {} twice", tree[i]);
    ++open;
  }
  for (const ShardId id : wanted)
    if (!seen.contains(id)) return fail(Code::invalid, "the aggregation tree lacks the leaf {}", id);
  if (open > 1) return fail(Code::invalid, "the aggregation tree falls into {} trees", open);
  return {};
}

const PlanShard* Plan::find(ShardId id) const {
  const auto found =
      std::lower_bound(shards.begin(), shards.end(), id,
                       [](const PlanShard& shard, ShardId wanted) { return shard.id < wanted; });
  return found != shards.end() && found->id == id ? &*found : nullptr;
}

Result<Coverage> coverage(const Plan& plan, const Store& store) {
  if (plan.store != store.digest())
    return fail(Code::mismatch, "the plan is for the store {}, this one is {}: plan it anew",
                plan.store.brief(), store.digest().brief());
  if (plan.executor != store.executor() || plan.executor_version != store.executor_version())
    return fail(Code::incompatible, "the plan is for the executor {} {}, the store for {} {}: plan it anew",
                plan.executor, plan.executor_version, store.executor(), store.executor_version());
  Coverage result;
  result.slice = plan.slice;
  std::vector<std::uint8_t> seen(store.unit_count());  // 1: once, 2: more often
  const auto mark = [&](UnitIndex unit) {
    if (unit >= seen.size())
      result.foreign.push_back(unit);
    else if (seen[unit] < 2)
      ++seen[unit];
  };
  for (const PlanShard& shard : plan.shards)
    for (const UnitIndex unit : shard.units) mark(unit);
  for (const FailedUnit& failed : plan.failed) mark(failed.unit);
  for (const FailedUnit& failed : plan.failed)
    if (failed.unit < seen.size() && seen[failed.unit] == 1) result.failed.push_back(failed.unit);
  for (UnitIndex unit = 0; unit < seen.size(); ++unit) {
    if (seen[unit] == 0) result.missing.push_back(unit);
    if (seen[unit] == 2) result.twice.push_back(unit);
  }
  std::sort(result.foreign.begin(), result.foreign.end());
  std::sort(result.failed.begin(), result.failed.end());
  return result;
}

namespace {

Result<std::string> name_units(const Store& store, std::span<const UnitIndex> units, std::size_t most) {
  std::string names;
  for (const UnitIndex index : units.first(std::min(most, units.size()))) {
    FURLONG_TRY(const Unit unit, store.unit(index));
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", one_line(unit.name));
  }
  if (units.size() > most) names += fmt::format(" and {} more", units.size() - most);
  return names;
}

}  // namespace

Status require_coverage(const Plan& plan, const Store& store, std::size_t most) {
  FURLONG_TRY(const Coverage found, coverage(plan, store));
  if (found.complete()) return {};
  std::vector<std::string> faults;
  if (found.slice != 0)
    faults.push_back(
        fmt::format("it is the plan of a slice, the first {} of {} units (FURLONG_SCAN_LIMIT_UNITS)",
                    found.slice, store.unit_count()));
  const auto add = [&](std::span<const UnitIndex> units, std::string_view what) -> Status {
    if (units.empty()) return {};
    FURLONG_TRY(const std::string names, name_units(store, units, most));
    faults.push_back(fmt::format("{} {}: {}", units.size(), what, names));
    return {};
  };
  FURLONG_CHECK(add(found.failed, "failed and in no shard"));
  FURLONG_CHECK(add(found.missing, "in no shard"));
  FURLONG_CHECK(add(found.twice, "there more than once"));
  if (!found.foreign.empty())
    faults.push_back(
        fmt::format("{} that the store does not have: unit {}", found.foreign.size(), found.foreign.front()));
  return fail(Code::invalid, "the plan does not have each unit in exactly one shard: {}", join(faults, "; "));
}

namespace {

const std::vector<std::string> kCostColumns{"shard",        "units",   "cost_kind",  "work",
                                            "record_bytes", "seconds", "peak_bytes", "own_bytes",
                                            "cross_bytes",  "foreign"};

}  // namespace

std::string costs_csv(const Plan& plan, const std::map<ShardId, Cost>& costs) {
  std::set<std::string> features;
  for (const auto& [id, cost] : costs)
    for (const auto& [name, value] : cost.features) features.insert(name);
  std::vector<std::string> row = kCostColumns;
  row.insert(row.end(), features.begin(), features.end());
  std::string text = csv_row(row);
  for (const PlanShard& shard : plan.shards) {
    const auto found = costs.find(shard.id);
    if (found == costs.end()) continue;
    const Cost& cost = found->second;
    row = {std::to_string(shard.id),
           std::to_string(shard.units.size()),
           std::string(cost_kind_name(shard.cost_kind)),
           csv_number(cost.work),
           std::to_string(cost.record_bytes),
           csv_number(cost.seconds),
           std::to_string(cost.peak_bytes),
           std::to_string(shard.own_bytes),
           std::to_string(shard.cross_bytes),
           std::to_string(shard.foreign)};
    for (const std::string& name : features) {
      const auto value = cost.features.find(name);  // empty: the executor did not count it
      row.push_back(value == cost.features.end() ? "" : csv_number(value->second));
    }
    text += csv_row(row);
  }
  return text;
}

namespace {

Result<CostRow> cost_row(const std::vector<std::string>& columns, const std::vector<std::string>& row,
                         const std::string& where) {
  CostRow result;
  std::int64_t shard = 0, units = 0, record_bytes = 0, peak_bytes = 0, unused = 0;
  const std::map<std::string, std::int64_t*> integers{
      {"shard", &shard},           {"units", &units},      {"record_bytes", &record_bytes},
      {"peak_bytes", &peak_bytes}, {"own_bytes", &unused}, {"cross_bytes", &unused},
      {"foreign", &unused}};
  const std::map<std::string, double*> numbers{{"work", &result.cost.work},
                                               {"seconds", &result.cost.seconds}};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool feature = i >= kCostColumns.size();
    if (columns[i] == "cost_kind" || (row[i].empty() && feature)) continue;
    const auto bad = [&] {
      return fail(Code::invalid, "{}: column '{}': '{}' is no amount", where, columns[i], row[i]);
    };
    if (const auto integer = integers.find(columns[i]); !feature && integer != integers.end()) {
      const auto parsed = parse_integer(row[i]);
      const bool id = integer->second == &shard || integer->second == &units;
      if (!parsed || *parsed < 0 || (id && *parsed >= kJoin)) return bad();
      *integer->second = *parsed;
      continue;
    }
    const auto parsed = parse_number(row[i]);
    if (!parsed || *parsed < 0) return bad();
    *(feature ? &result.cost.features[columns[i]] : numbers.at(columns[i])) = *parsed;
  }
  result.shard = static_cast<ShardId>(shard);
  result.units = static_cast<std::uint32_t>(units);
  result.cost.record_bytes = static_cast<std::uint64_t>(record_bytes);
  result.cost.peak_bytes = static_cast<std::uint64_t>(peak_bytes);
  return result;
}

}  // namespace

Result<std::vector<CostRow>> parse_costs_csv(std::string_view text, const std::string& name) {
  FURLONG_TRY(const auto rows, parse_csv(text, name));
  if (rows.empty() || rows[0].size() < kCostColumns.size() ||
      !std::equal(kCostColumns.begin(), kCostColumns.end(), rows[0].begin()))
    return fail(Code::invalid, "{}:1: not a file of costs: its columns begin with {}", name,
                join(kCostColumns, ","));
  std::vector<CostRow> result;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size())
      return fail(Code::invalid, "{}: row {}: {} fields, expected {}", name, i + 1, rows[i].size(),
                  rows[0].size());
    FURLONG_TRY(CostRow row, cost_row(rows[0], rows[i], fmt::format("{}: row {}", name, i + 1)));
    result.push_back(std::move(row));
  }
  return result;
}

Result<std::string> failed_csv(std::span<const FailedUnit> failed, const Store& store) {
  std::vector<std::vector<std::string>> rows;
  for (const FailedUnit& entry : failed) {
    FURLONG_TRY(const Unit unit, store.unit(entry.unit));
    rows.push_back(
        {unit.name, unit.key.hex(), entry.code == Code::exhausted ? "over the cap" : "rejected", entry.why});
  }
  std::sort(rows.begin(), rows.end());
  std::string text = csv_row(std::vector<std::string>{"unit", "key", "kind", "why"});
  for (const auto& row : rows) text += csv_row(row);
  return text;
}

std::filesystem::path beside_plan(const std::filesystem::path& plan, std::string_view what) {
  std::filesystem::path beside = plan;
  if (beside.extension() == ".fsp") beside.replace_extension();
  beside += fmt::format(".{}.csv", what);
  return beside;
}

}  // namespace furlong::shard
