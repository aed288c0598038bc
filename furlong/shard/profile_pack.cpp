#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "furlong/base/text.h"
#include "furlong/shard/internal/profile_counts.h"
#include "furlong/shard/make_plan.h"
#include "furlong/shard/pace.h"

// Packing: a few shards are open at once; a unit goes into the one where it adds fewest bytes and that has
// room, and a new one is opened only where none has. Which open shards have an item is a bit mask a item, so
// that a unit is weighed against all of them in one pass over its items.

namespace furlong::shard {
namespace {

using internal::CounterTable;
using internal::Limits;
using internal::NeededItems;

constexpr std::uint32_t kMostOpen = 16;
using Mask = std::uint16_t;

struct Shard {
  std::vector<UnitIndex> units;
  std::vector<double> totals;
  bool giant = false;
};

struct Packed {
  std::vector<Shard> shards;   ///< by their first unit
  std::vector<double> totals;  ///< of all but giants, each item counted once
  std::uint32_t units = 0;     ///< that are in no giant
};

class Packing {
 public:
  Packing(const Profile& profile, const CounterTable& table, const Limits& limits, NeededItems& needed,
          std::uint32_t open)
      : profile_(profile),
        table_(table),
        limits_(limits),
        needed_(needed),
        // The walk of a closure stops at what the one open shard has: with several it would have to go
        // through all of a closure for each.
        most_open_(needed.accounting() == Accounting::closure ? 1 : std::clamp(open, 1u, kMostOpen)),
        mask_(profile.items()),
        counted_(profile.items()),
        tentative_(table.size()) {
    packed_.totals.resize(table.size());
  }

  Result<Packed> run(std::span<const UnitIndex> order, std::stop_token stop, Pace& pace) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i % 1024 == 0) {
        if (stop.stop_requested()) return fail(Code::timeout, "stopped while units were packed");
        pace.advance(std::min<std::size_t>(1024, order.size() - i));
      }
      place(order[i]);
    }
    while (!open_.empty()) close(0);
    for (Shard& shard : packed_.shards) std::sort(shard.units.begin(), shard.units.end());
    std::sort(packed_.shards.begin(), packed_.shards.end(),
              [](const Shard& a, const Shard& b) { return a.units.front() < b.units.front(); });
    return std::move(packed_);
  }

 private:
  struct Open {
    Shard shard;
    std::vector<std::uint32_t> items;
    Mask bit = 0;
  };

  std::span<const std::uint32_t> items_of(UnitIndex unit) {
    return needed_.of(unit, [this](std::uint32_t item) { return mask_[item] != 0; });
  }
  std::uint64_t bytes(std::span<const std::uint32_t> items) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t item : items) sum += profile_.item_bytes[item];
    return sum;
  }

  // Whether a shard has room; looks, and changes nothing.
  bool fits(const std::vector<double>& totals, UnitIndex unit, std::uint64_t added_bytes) {
    tentative_ = totals;
    table_.add(unit, tentative_);
    tentative_[table_.item_bytes()] += static_cast<double>(added_bytes);
    return limits_.fit(tentative_);
  }

  void place(UnitIndex unit) {
    const std::span<const std::uint32_t> items = items_of(unit);
    const std::uint64_t whole = bytes(items);
    std::array<std::uint64_t, kMostOpen> shared{};
    for (const std::uint32_t item : items)
      for (unsigned mask = mask_[item]; mask != 0; mask &= mask - 1)
        shared[static_cast<unsigned>(std::countr_zero(mask))] += profile_.item_bytes[item];
    Open* best = nullptr;
    std::uint64_t best_shared = 0;
    for (Open& open : open_) {
      const std::uint64_t own = shared[static_cast<unsigned>(std::countr_zero(open.bit))];
      if ((best != nullptr && own <= best_shared) || !fits(open.shard.totals, unit, whole - own)) continue;
      best = &open;
      best_shared = own;
    }
    if (best != nullptr) {
      accept(*best, unit, items);
      return;
    }
    const std::span<const std::uint32_t> all = needed_.of(unit);  // also what the open shard of a closure has
    if (!fits(std::vector<double>(table_.size()), unit, bytes(all))) {
      give_alone(unit, all);
      return;
    }
    if (open_.size() == most_open_) close(fullest());
    accept(begin(), unit, all);
  }

  void accept(Open& open, UnitIndex unit, std::span<const std::uint32_t> items) {
    table_.add(unit, open.shard.totals);
    open.shard.units.push_back(unit);
    for (const std::uint32_t item : items) {
      if ((mask_[item] & open.bit) != 0) continue;
      mask_[item] = static_cast<Mask>(mask_[item] | open.bit);
      open.items.push_back(item);
      open.shard.totals[table_.item_bytes()] += static_cast<double>(profile_.item_bytes[item]);
      if (counted_[item]) continue;
      counted_[item] = true;
      packed_.totals[table_.item_bytes()] += static_cast<double>(profile_.item_bytes[item]);
    }
    table_.add(unit, packed_.totals);
    ++packed_.units;
  }

  void give_alone(UnitIndex unit, std::span<const std::uint32_t> items) {
    Shard& shard = packed_.shards.emplace_back();
    shard.giant = true;
    shard.units.push_back(unit);
    shard.totals.resize(table_.size());
    table_.add(unit, shard.totals);
    shard.totals[table_.item_bytes()] += static_cast<double>(bytes(items));
  }

  Open& begin() {
    unsigned used = 0;
    for (const Open& open : open_) used |= open.bit;
    Open& open = open_.emplace_back();
    open.bit = static_cast<Mask>(1u << std::countr_one(used));
    open.shard.totals.resize(table_.size());
    return open;
  }

  std::size_t fullest() const {
    std::size_t found = 0;
    double most = -1;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const double fill = limits_.fill(open_[i].shard.totals);
      if (fill <= most) continue;
      most = fill;
      found = i;
    }
    return found;
  }

  void close(std::size_t which) {
    Open& open = open_[which];
    for (const std::uint32_t item : open.items) mask_[item] = static_cast<Mask>(mask_[item] & ~open.bit);
    packed_.shards.push_back(std::move(open.shard));
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  const Profile& profile_;
  const CounterTable& table_;
  const Limits& limits_;
  NeededItems& needed_;
  const std::uint32_t most_open_;
  std::vector<Mask> mask_;
  std::vector<bool> counted_;
  std::vector<double> tentative_;
  std::vector<Open> open_;
  Packed packed_;
};

std::uint64_t cross_bytes(const Plan& plan) {
  std::uint64_t sum = 0;
  for (const PlanShard& shard : plan.shards) sum += shard.cross_bytes;
  return sum;
}

void fill_plan(PackOutcome& outcome, const Profile& profile, const CounterTable& table, const Limits& limits,
               Packed packed, const std::optional<Sharing>& sharing) {
  Plan& plan = outcome.plan;
  plan.store = profile.store;
  plan.executor = profile.executor;
  plan.executor_version = profile.executor_version;
  plan.sizing = limits.sizing();
  plan.failed = profile.failed;
  for (std::size_t i = 0; i < packed.shards.size(); ++i) {
    Shard& packed_shard = packed.shards[i];
    PlanShard& shard = plan.shards.emplace_back();
    shard.id = static_cast<ShardId>(i);
    internal::set_cost(shard, limits.predict(packed_shard.totals), limits.predicts(), table.any_measured());
    for (const UnitIndex unit : packed_shard.units) shard.own_bytes += profile.own_bytes(unit);
    shard.units = std::move(packed_shard.units);
    outcome.counters.push_back(table.counters(packed_shard.totals));
    if (packed_shard.giant) outcome.giants.push_back(shard.id);
  }
  if (sharing) {
    complete_plan(plan, *sharing);
    return;
  }
  std::vector<ShardId> ids(plan.shards.size());
  std::iota(ids.begin(), ids.end(), ShardId{0});
  plan.tree = balanced_tree(ids);
}

Status check_request(const Profile& profile, const PackRequest& request) {
  FURLONG_CHECK(check_profile(profile, "the profile"));
  if (request.accounting == Accounting::touched && !profile.touched)
    return fail(Code::invalid,
                "the profile has no touch graph to count by: record it anew, or count by closure");
  if (request.accounting == Accounting::closure && !profile.references)
    return fail(Code::invalid, "the profile has no references to count closures by: record it anew");
  if (request.order == OrderKind::sharing && !profile.references && !profile.touched)
    return fail(Code::invalid, "the profile does not say what units share: the plain order is all there is");
  return {};
}

}  // namespace

Result<PackOutcome> pack_profile(const Profile& profile, const PackRequest& request) {
  FURLONG_CHECK(check_request(profile, request));
  const CounterTable table(profile);
  FURLONG_TRY(const Limits limits, Limits::make(table, request));
  std::optional<Sharing> sharing;
  if (profile.references || profile.touched) {
    FURLONG_TRY(sharing, profile_sharing(profile));
  }
  std::vector<UnitIndex> plain;
  for (UnitIndex unit = 0; unit < profile.units(); ++unit)
    if (profile.states[unit] != UnitState::failed) plain.push_back(unit);
  if (plain.empty()) return fail(Code::invalid, "the profile has no unit that could be planned");
  NeededItems needed(profile, request.accounting.value_or(best_accounting(profile)));
  const bool other = table.any_measured() && sharing && request.order != OrderKind::plain;
  Pace pace("pack", plain.size() * (other && !request.order ? 2 : 1), request.progress);

  std::optional<PackOutcome> best;
  const auto attempt = [&](std::span<const UnitIndex> order, OrderKind kind) -> Status {
    PackOutcome outcome;
    outcome.accounting = needed.accounting();
    outcome.guessed = table.unknown();
    outcome.cross_known = sharing.has_value();
    FURLONG_TRY(Packed packed,
                Packing(profile, table, limits, needed, request.open).run(order, request.stop, pace));
    const auto giants = static_cast<std::uint32_t>(std::count_if(
        packed.shards.begin(), packed.shards.end(), [](const Shard& shard) { return shard.giant; }));
    outcome.lower_bound = giants + (packed.units == 0 ? 0 : limits.lower_bound(packed.totals, packed.units));
    fill_plan(outcome, profile, table, limits, std::move(packed), sharing);
    outcome.plan.order = fmt::format("profile, {}", order_name(kind));
    const auto shards = static_cast<std::uint32_t>(outcome.plan.shards.size());
    const std::uint64_t cross = cross_bytes(outcome.plan);
    if (best) {
      outcome.plain_shards = best->plain_shards;
      outcome.plain_cross_bytes = best->plain_cross_bytes;
    }
    (kind == OrderKind::plain ? outcome.plain_shards : outcome.sharing_shards) = shards;
    (kind == OrderKind::plain ? outcome.plain_cross_bytes : outcome.sharing_cross_bytes) = cross;
    if (!best || std::pair(shards, cross) < std::pair(static_cast<std::uint32_t>(best->plan.shards.size()),
                                                      cross_bytes(best->plan))) {
      best = std::move(outcome);
      return {};
    }
    best->sharing_shards = shards;
    best->sharing_cross_bytes = cross;
    return {};
  };
  if (!other || !request.order) FURLONG_CHECK(attempt(plain, OrderKind::plain));
  if (other) {
    const std::uint32_t shards = best ? static_cast<std::uint32_t>(best->plan.shards.size())
                                      : static_cast<std::uint32_t>(plain.size() / 64 + 2);
    FURLONG_CHECK(attempt(internal::order_by_items(profile, plain, shards), OrderKind::sharing));
  }
  pace.end();
  return *std::move(best);
}

std::string PackOutcome::text() const {
  std::string text = fmt::format("{} shards ({} at the least), items counted by {}", plan.shards.size(),
                                 lower_bound, accounting_name(accounting));
  if (plain_shards != 0 && sharing_shards != 0)
    text +=
        fmt::format("; {} shards and {} of cross bytes in plain order, {} and {} by sharing", plain_shards,
                    human_bytes(plain_cross_bytes), sharing_shards, human_bytes(sharing_cross_bytes));
  if (!giants.empty()) text += fmt::format("; {} units fit into no shard and stand alone", giants.size());
  if (guessed != 0) text += fmt::format("; {} units were not measured and count as the mean", guessed);
  if (!cross_known) text += "; what units refer to is unknown, and so are cross bytes";
  return text;
}

}  // namespace furlong::shard
