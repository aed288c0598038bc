#include "furlong/shard/internal/profile_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "furlong/base/text.h"

namespace furlong::shard {

std::string_view accounting_name(Accounting accounting) {
  switch (accounting) {
    case Accounting::touched:
      return "touched";
    case Accounting::closure:
      return "closure";
    case Accounting::own:
      break;
  }
  return "own";
}

Accounting best_accounting(const Profile& profile) {
  if (profile.touched) return Accounting::touched;
  return profile.references ? Accounting::closure : Accounting::own;
}

namespace internal {

CounterTable::CounterTable(const Profile& profile) : profile_(profile), names_(profile.features) {
  names_.emplace_back(kUnitCount);
  work_ = names_.size();
  for (const std::string_view name : {kUnitWork, kUnitRecordBytes, kItemBytes}) names_.emplace_back(name);
  if (profile.seconds) names_.emplace_back("seconds");
  std::vector<double> sums(names_.size());
  for (UnitIndex unit = 0; unit < profile.units(); ++unit) {
    if (profile.states[unit] == UnitState::unknown) ++unknown_;
    if (profile.states[unit] != UnitState::measured) continue;
    ++measured_;
    add(unit, sums);
  }
  for (double& sum : sums) sum = measured_ > 0 ? sum / measured_ : 0;
  means_ = std::move(sums);
}

std::optional<std::size_t> CounterTable::seconds() const {
  if (!profile_.seconds) return std::nullopt;
  return item_bytes() + 1;
}

Result<std::size_t> CounterTable::find(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  return fail(Code::invalid, "the profile does not count '{}'{}", name, nearest_choices(name, names_));
}

void CounterTable::add(UnitIndex unit, std::span<double> totals) const {
  totals[work_ - 1] += 1;
  if (profile_.states[unit] != UnitState::measured) {
    for (std::size_t i = 0; i < totals.size(); ++i)
      if (i != work_ - 1 && i != item_bytes()) totals[i] += means_[i];
    return;
  }
  for (std::size_t f = 0; f < profile_.counters.size(); ++f) totals[f] += profile_.counters[f][unit];
  totals[work_] += profile_.work[unit];
  totals[record_bytes()] += static_cast<double>(profile_.record_bytes[unit]);
  if (profile_.seconds) totals[item_bytes() + 1] += (*profile_.seconds)[unit];
}

Counters CounterTable::counters(std::span<const double> totals) const {
  Counters counters;
  for (std::size_t i = 0; i < names_.size(); ++i) counters[names_[i]] = totals[i];
  return counters;
}

namespace {

bool has_graph(const Profile& profile, Accounting accounting) {
  return accounting == Accounting::own || (accounting == Accounting::touched && profile.touched) ||
         (accounting == Accounting::closure && profile.references);
}

}  // namespace

NeededItems::NeededItems(const Profile& profile, Accounting accounting)
    : profile_(profile), accounting_(has_graph(profile, accounting) ? accounting : best_accounting(profile)) {
  if (accounting_ != Accounting::own && profile.references) closure_.emplace(profile);
}

std::span<const std::uint32_t> NeededItems::own(UnitIndex unit) {
  own_.resize(profile_.first_item[unit + 1] - profile_.first_item[unit]);
  std::iota(own_.begin(), own_.end(), profile_.first_item[unit]);
  return own_;
}

double Limits::FlatSum::at(std::span<const double> totals) const {
  double sum = base;
  for (const FlatTerm& flat : terms) sum += flat.term.at(totals[flat.column]);
  return sum;
}

Result<Limits::FlatSum> Limits::flatten(const CounterTable& table, const TermSum& sum,
                                        std::string_view what) {
  FlatSum flat{sum.base, {}};
  for (const Term& term : sum.terms) {
    auto column = table.find(term.feature);
    if (!column) return std::move(column.error()).with(fmt::format("the model's {}", what));
    flat.terms.push_back({*column, term});
  }
  return flat;
}

Result<Limits> Limits::make(const CounterTable& table, const PackRequest& request) {
  Limits limits;
  limits.sizing_ = request.sizing;
  if (request.model) {
    FURLONG_CHECK(apply_model(*request.model, limits.sizing_, WorkSource::counters));
    if (request.model->work) {
      FURLONG_TRY(limits.work_, flatten(table, request.model->work->formula, "W"));
    }
    if (request.model->record_bytes) {
      FURLONG_TRY(limits.record_, flatten(table, request.model->record_bytes->formula, "record bytes"));
    }
  }
  for (const auto& [name, cap] : request.caps) {
    if (!(cap > 0) || !std::isfinite(cap))
      return fail(Code::invalid, "the cap on '{}' must be above 0, not {}", name, cap);
    FURLONG_TRY(const std::size_t column, table.find(name));
    limits.caps_.emplace_back(column, cap);
  }
  const bool budget = request.sizing.budget_bytes != 0 || request.sizing.budget_seconds > 0;
  if (budget) FURLONG_CHECK(limits.sizing_.check());
  if (!budget && limits.caps_.empty())
    return fail(Code::invalid,
                "there is nothing to cut by: give a budget of memory or time, or a cap on a counter");
  limits.work_column_ = table.work();
  limits.record_column_ = table.any_measured() ? table.record_bytes() : table.item_bytes();
  limits.seconds_column_ = table.seconds();
  return limits;
}

Cost Limits::predict(std::span<const double> totals) const {
  Cost cost;
  cost.work = work_ ? work_->at(totals) : totals[work_column_];
  cost.record_bytes = static_cast<std::uint64_t>(record_ ? record_->at(totals) : totals[record_column_]);
  if (seconds_column_) cost.seconds = totals[*seconds_column_];
  return cost;
}

bool Limits::fit(std::span<const double> totals) const {
  for (const auto& [column, cap] : caps_)
    if (totals[column] > cap) return false;
  return !sizing_.reaches_cut(predict(totals));
}

double Limits::fill(std::span<const double> totals) const {
  double fill = 0;
  for (const auto& [column, cap] : caps_) fill = std::max(fill, totals[column] / cap);
  const Cost cost = predict(totals);
  if (sizing_.budget_bytes != 0)
    fill = std::max(fill, sizing_.predicted_bytes(cost) / static_cast<double>(sizing_.budget_bytes));
  if (sizing_.budget_seconds > 0)
    fill = std::max(fill, sizing_.predicted_seconds(cost) / sizing_.budget_seconds);
  return fill;
}

std::uint32_t Limits::lower_bound(std::span<const double> totals, std::uint32_t most) const {
  const auto enough = [&](std::uint32_t shards) {
    std::vector<double> mean(totals.begin(), totals.end());
    for (double& value : mean) value /= shards;
    return fit(mean);
  };
  std::uint32_t low = 1, high = std::max(1u, most);  // the answer is in [low, high]
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

std::vector<UnitIndex> order_by_items(const Profile& profile, std::span<const UnitIndex> order,
                                      std::uint32_t shards) {
  const ItemLists& lists = profile.touched ? *profile.touched : *profile.references;
  std::vector<std::uint32_t> users(profile.items());
  for (const UnitIndex unit : order)
    for (const std::uint32_t item : lists.of(unit)) ++users[item];
  const double share =
      static_cast<double>(shards) / static_cast<double>(std::max<std::size_t>(1, order.size()));
  const auto saves = [&](std::uint32_t item) {
    const double count = users[item];
    if (count < 2) return 0.0;
    return (std::min(count, static_cast<double>(shards)) - std::max(1.0, count * share)) *
           static_cast<double>(profile.item_bytes[item]);
  };
  // The item's place among all items stands for the group, so that groups whose items came together in the
  // store stay together; a unit that shares nothing stays at its own items.
  std::vector<std::uint32_t> place(profile.units());
  for (const UnitIndex unit : order) {
    place[unit] = profile.first_item[unit];
    double most = 0;
    for (const std::uint32_t item : lists.of(unit)) {
      const double saved = saves(item);
      if (saved <= most) continue;
      most = saved;
      place[unit] = item;
    }
  }
  std::vector<UnitIndex> sorted(order.begin(), order.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](UnitIndex a, UnitIndex b) { return place[a] < place[b]; });
  return sorted;
}

void set_cost(PlanShard& shard, const Cost& cost, bool predicted, bool measured) {
  shard.cost_kind = !measured ? CostKind::unknown : predicted ? CostKind::work : CostKind::profile_units;
  shard.cost = measured ? cost.work : 0;
  shard.record_bytes = measured ? cost.record_bytes : 0;
  shard.seconds = measured ? cost.seconds : 0;
}

}  // namespace internal

Counters profile_counters(const Profile& profile, std::span<const UnitIndex> units, Accounting accounting) {
  const internal::CounterTable table(profile);
  internal::NeededItems needed(profile, accounting);
  std::vector<double> totals(table.size());
  std::vector<bool> seen(profile.items());
  for (const UnitIndex unit : units) {
    table.add(unit, totals);
    for (const std::uint32_t item : needed.of(unit)) {
      if (!seen[item]) totals[table.item_bytes()] += static_cast<double>(profile.item_bytes[item]);
      seen[item] = true;
    }
  }
  return table.counters(totals);
}

Counters profile_counters(const Profile& profile, std::span<const UnitIndex> units) {
  return profile_counters(profile, units, best_accounting(profile));
}

std::map<ShardId, Cost> predicted_costs(const Plan& plan, std::span<const Counters> counters) {
  std::map<ShardId, Cost> costs;
  for (std::size_t i = 0; i < plan.shards.size() && i < counters.size(); ++i) {
    Cost& cost = costs[plan.shards[i].id];
    cost.work = plan.shards[i].cost;
    cost.record_bytes = plan.shards[i].record_bytes;
    cost.seconds = plan.shards[i].seconds;
    cost.features = counters[i];
    // The file has columns of these names for the shard itself.
    for (const char* name : {"units", "work", "record_bytes", "seconds"}) cost.features.erase(name);
  }
  return costs;
}

Status use_profile(std::vector<FitRun>& runs, const Plan& plan, const Profile& profile) {
  if (plan.store != profile.store)
    return fail(Code::mismatch, "the plan is for the store {}, the profile of {}: record it anew",
                plan.store.brief(), profile.store.brief());
  for (const PlanShard& shard : plan.shards)
    for (const UnitIndex unit : shard.units)
      if (unit >= profile.units())
        return fail(Code::invalid, "shard {} has the unit {}, the profile has {}", shard.id, unit,
                    profile.units());
  for (FitRun& run : runs) {
    const auto shard = std::find_if(plan.shards.begin(), plan.shards.end(), [&](const PlanShard& candidate) {
      return run.name == fmt::format("shard {}", candidate.id);
    });
    if (shard == plan.shards.end()) return fail(Code::invalid, "the plan has no {}", run.name);
    run.counters = profile_counters(profile, shard->units);
  }
  return {};
}

}  // namespace furlong::shard
