#include "furlong/shard/profile.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::shard {

std::uint64_t Profile::own_bytes(UnitIndex unit) const {
  std::uint64_t sum = 0;
  for (std::uint32_t item = first_item[unit]; item < first_item[unit + 1]; ++item) sum += item_bytes[item];
  return sum;
}

std::vector<UnitIndex> Profile::owners() const {
  std::vector<UnitIndex> owners(items());
  for (UnitIndex unit = 0; unit < units(); ++unit)
    std::fill(owners.begin() + first_item[unit], owners.begin() + first_item[unit + 1], unit);
  return owners;
}

Result<std::size_t> Profile::feature(std::string_view name) const {
  const auto found = std::find(features.begin(), features.end(), name);
  if (found != features.end()) return static_cast<std::size_t>(found - features.begin());
  return fail(Code::invalid, "the profile has no feature '{}'{}", name, nearest_choices(name, features));
}

namespace {

Status check_lists(const ItemLists& lists, UnitIndex units, std::uint32_t items, std::string_view what) {
  if (lists.first.size() != std::size_t{units} + 1 || lists.first.front() != 0 ||
      lists.first.back() != lists.items.size())
    return fail(Code::invalid, "the {} do not have one list for each of {} units", what, units);
  for (UnitIndex unit = 0; unit < units; ++unit)
    if (lists.first[unit] > lists.first[unit + 1])
      return fail(Code::invalid, "the {} of unit {} end before they begin", what, unit);
  for (UnitIndex unit = 0; unit < units; ++unit) {
    const auto list = lists.of(unit);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] >= items)
        return fail(Code::invalid, "the {} of unit {} have the item {}, of {}", what, unit, list[i], items);
      if (i > 0 && list[i] <= list[i - 1])
        return fail(Code::invalid, "the {} of unit {} do not ascend at item {}", what, unit, list[i]);
    }
  }
  return {};
}

bool owns(const Profile& profile, UnitIndex unit, std::uint32_t item) {
  return item >= profile.first_item[unit] && item < profile.first_item[unit + 1];
}

Status check_graphs(const Profile& p) {
  if (p.references) {
    FURLONG_CHECK(check_lists(*p.references, p.units(), p.items(), "references"));
    for (UnitIndex unit = 0; unit < p.units(); ++unit)
      for (const std::uint32_t item : p.references->of(unit))
        if (owns(p, unit, item))
          return fail(Code::invalid, "unit {} refers to the item {}, which it owns", unit, item);
  }
  if (!p.touched) return {};
  FURLONG_CHECK(check_lists(*p.touched, p.units(), p.items(), "touched items"));
  for (UnitIndex unit = 0; unit < p.units() && p.references; ++unit) {
    const auto references = p.references->of(unit);
    for (const std::uint32_t item : p.touched->of(unit))
      if (!owns(p, unit, item) && !std::binary_search(references.begin(), references.end(), item))
        return fail(Code::invalid, "unit {} touched the item {}, which it neither owns nor refers to", unit,
                    item);
  }
  return {};
}

// Names of counters that are no features (furlong/shard/profile_plan.h).
constexpr std::string_view kReserved[] = {"units", "work", "record_bytes", "item_bytes", "seconds"};

Status check_columns(const Profile& p) {
  const std::size_t n = p.keys.size();
  const auto whole = [&](std::size_t size, std::string_view what) -> Status {
    if (size == n) return {};
    return fail(Code::invalid, "the column {} has {} values for {} units", what, size, n);
  };
  FURLONG_CHECK(whole(p.names.size(), "names"));
  FURLONG_CHECK(whole(p.states.size(), "states"));
  FURLONG_CHECK(whole(p.work.size(), "work"));
  FURLONG_CHECK(whole(p.record_bytes.size(), "record bytes"));
  if (p.seconds) FURLONG_CHECK(whole(p.seconds->size(), "seconds"));
  FURLONG_CHECK(whole(p.first_item.size() - 1, "items"));
  if (p.features.size() != p.counters.size())
    return fail(Code::invalid, "{} features have {} columns", p.features.size(), p.counters.size());
  for (std::size_t f = 0; f < p.features.size(); ++f) {
    FURLONG_CHECK(whole(p.counters[f].size(), p.features[f]));
    if (std::find(std::begin(kReserved), std::end(kReserved), p.features[f]) != std::end(kReserved))
      return fail(Code::invalid, "a feature may not be named '{}', which planners count themselves",
                  p.features[f]);
    if (f > 0 && p.features[f] <= p.features[f - 1])
      return fail(Code::invalid, "the features do not ascend at '{}'", p.features[f]);
  }
  return {};
}

Status check_all(const Profile& p) {
  if (p.first_item.empty() || p.first_item.front() != 0 || p.first_item.back() != p.item_bytes.size() ||
      !std::is_sorted(p.first_item.begin(), p.first_item.end()))
    return fail(Code::invalid, "the units' items are not the {} items there are", p.item_bytes.size());
  FURLONG_CHECK(check_columns(p));
  std::size_t failed = 0;
  for (std::size_t i = 0; i < p.failed.size(); ++i) {
    const UnitIndex unit = p.failed[i].unit;
    if (unit >= p.units() || p.states[unit] != UnitState::failed || (i > 0 && unit <= p.failed[i - 1].unit))
      return fail(Code::invalid, "unit {} cannot be among those that failed", unit);
  }
  for (const UnitState state : p.states) {
    if (state > UnitState::failed)
      return fail(Code::incompatible, "unknown tag {} of a unit's state", static_cast<int>(state));
    if (state == UnitState::failed) ++failed;
  }
  if (failed != p.failed.size())
    return fail(Code::invalid, "{} units failed, and {} say why", failed, p.failed.size());
  return check_graphs(p);
}

}  // namespace

Status check_profile(const Profile& profile, const std::string& name) {
  Status status = check_all(profile);
  if (!status) return std::move(status.error()).with(name);
  return {};
}

Result<Sharing> profile_sharing(const Profile& profile) {
  if (!profile.references && !profile.touched)
    return fail(
        Code::invalid,
        "the profile has neither references nor touched items: record it anew to order or cut by what units "
        "share");
  ItemLists foreign;
  if (profile.references) {
    foreign = *profile.references;
  } else {
    for (UnitIndex unit = 0; unit < profile.units(); ++unit) {
      for (const std::uint32_t item : profile.touched->of(unit))
        if (!owns(profile, unit, item)) foreign.items.push_back(item);
      foreign.first.push_back(foreign.items.size());
    }
  }
  std::vector<std::uint64_t> own(profile.units());
  for (UnitIndex unit = 0; unit < profile.units(); ++unit) own[unit] = profile.own_bytes(unit);
  std::vector<Sharing::Item> items(profile.items());
  const std::vector<UnitIndex> owners = profile.owners();
  for (std::uint32_t item = 0; item < profile.items(); ++item)
    items[item] = {owners[item], profile.item_bytes[item]};
  return Sharing(std::move(own), std::move(foreign.first), std::move(foreign.items), std::move(items));
}

Closure::Closure(const Profile& profile)
    : profile_(profile),
      owners_(profile.owners()),
      unit_mark_(profile.units()),
      item_mark_(profile.items()) {}

void Closure::begin() {
  if (++walk_ == 0) {  // after 2^32 walks the marks could lie
    std::fill(unit_mark_.begin(), unit_mark_.end(), 0u);
    std::fill(item_mark_.begin(), item_mark_.end(), 0u);
    walk_ = 1;
  }
  reached_.clear();
  found_.clear();
}

void Closure::expand(UnitIndex unit) {
  if (unit_mark_[unit] == walk_) return;
  unit_mark_[unit] = walk_;
  for (const std::uint32_t item : profile_.references->of(unit)) {
    if (item_mark_[item] == walk_) continue;
    item_mark_[item] = walk_;
    reached_.push_back(item);
  }
}

}  // namespace furlong::shard
