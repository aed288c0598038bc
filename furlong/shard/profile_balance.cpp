#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "furlong/shard/internal/profile_counts.h"
#include "furlong/shard/internal/sharing_graph.h"
#include "furlong/shard/make_plan.h"

// Scotch cuts a graph of links between units; cross bytes count an item once a shard, however many of its
// units refer to it. So its cut is only one place where this begins, runs of an order are others: from each,
// single units move by what cross bytes themselves gain, and the best end is taken.

namespace furlong::shard {
namespace {

using internal::CounterTable;
using internal::NeededItems;

using Part = std::uint32_t;

// Scotch takes about a minute for a hundred thousand units, and cannot be stopped.
constexpr std::size_t kMostForScotch = 100'000;

/// How many units of a part refer to an item; a flat table with linear probing.
class UserCounts {
 public:
  explicit UserCounts(std::size_t most) {
    std::size_t size = 16;
    while (size < 2 * most) size *= 2;
    slots_.resize(size);
  }
  std::uint32_t get(std::uint32_t item, Part part) const {
    const Slot& slot = slots_[find(key(item, part))];
    return slot.count;
  }
  void add(std::uint32_t item, Part part, int by) {
    const std::uint64_t wanted = key(item, part);
    Slot& slot = slots_[find(wanted)];
    if (slot.key == 0) {
      slot.key = wanted;
      if (++used_ * 4 > slots_.size() * 3) {
        slot.count = static_cast<std::uint32_t>(by);
        grow();
        return;
      }
    }
    slot.count += static_cast<std::uint32_t>(by);
  }
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Slot& slot : slots_)
      if (slot.count > 0)
        visit(static_cast<std::uint32_t>((slot.key - 1) >> 32),
              static_cast<Part>((slot.key - 1) & 0xFFFFFFFF));
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: free; a pair whose count fell to 0 stays
    std::uint32_t count = 0;
  };
  static std::uint64_t key(std::uint32_t item, Part part) { return ((std::uint64_t{item} << 32) | part) + 1; }
  std::size_t find(std::uint64_t wanted) const {
    std::uint64_t mixed = wanted * 0x9E3779B97F4A7C15ull;
    std::size_t at = (mixed ^ (mixed >> 32)) & (slots_.size() - 1);
    while (slots_[at].key != 0 && slots_[at].key != wanted) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.count == 0) continue;
      slots_[find(slot.key)] = slot;
      ++used_;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

class Partition {
 public:
  Partition(const Profile& profile, const Sharing& sharing, std::span<const UnitIndex> members,
            const std::vector<double>& weights, Part parts)
      : profile_(profile),
        sharing_(sharing),
        members_(members),
        weights_(weights),
        part_(profile.units(), kNobody),
        part_weight_(parts),
        part_units_(parts),
        users_(members.size() * 4) {}

  void assign(std::span<const Part> parts) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const UnitIndex unit = members_[i];
      part_[unit] = parts[i];
      part_weight_[parts[i]] += weights_[unit];
      ++part_units_[parts[i]];
      for (const std::uint32_t item : sharing_.references(unit)) users_.add(item, parts[i], 1);
    }
  }

  Part part(UnitIndex unit) const { return part_[unit]; }
  Part parts() const { return static_cast<Part>(part_weight_.size()); }
  double weight(Part part) const { return part_weight_[part]; }
  double mean() const {
    return std::accumulate(part_weight_.begin(), part_weight_.end(), 0.0) / static_cast<double>(parts());
  }

  /// What the sum of cross bytes changes by when the unit goes to another part.
  double change(UnitIndex unit, Part to) const {
    const Part from = part_[unit];
    double sum = 0;
    for (const std::uint32_t item : sharing_.references(unit)) {
      const Sharing::Item& what = sharing_.items()[item];
      const Part owner = part_[what.owner];
      if (owner != from && users_.get(item, from) == 1) sum -= static_cast<double>(what.bytes);
      if (owner != to && users_.get(item, to) == 0) sum += static_cast<double>(what.bytes);
    }
    for (std::uint32_t item = profile_.first_item[unit]; item < profile_.first_item[unit + 1]; ++item) {
      const auto bytes = static_cast<double>(profile_.item_bytes[item]);
      if (users_.get(item, from) > 0) sum += bytes;
      if (users_.get(item, to) > 0) sum -= bytes;
    }
    return sum;
  }

  void move(UnitIndex unit, Part to) {
    const Part from = part_[unit];
    for (const std::uint32_t item : sharing_.references(unit)) {
      users_.add(item, from, -1);
      users_.add(item, to, 1);
    }
    part_[unit] = to;
    part_weight_[from] -= weights_[unit];
    part_weight_[to] += weights_[unit];
    --part_units_[from];
    ++part_units_[to];
  }

  void fill_empty();
  void balance(double imbalance);
  Status improve(double imbalance, std::stop_token stop);
  std::uint64_t objective() const;

 private:
  static constexpr Part kNobody = std::numeric_limits<Part>::max();

  const Profile& profile_;
  const Sharing& sharing_;
  const std::span<const UnitIndex> members_;
  const std::vector<double>& weights_;  // of each unit of the profile
  std::vector<Part> part_;              // of each unit of the profile; kNobody for those that failed
  std::vector<double> part_weight_;
  std::vector<std::uint32_t> part_units_;
  UserCounts users_;
};

// An empty part takes the lightest unit of the part that has most.
void Partition::fill_empty() {
  for (Part part = 0; part < parts(); ++part) {
    if (part_units_[part] != 0) continue;
    const auto most =
        static_cast<Part>(std::max_element(part_units_.begin(), part_units_.end()) - part_units_.begin());
    const UnitIndex* lightest = nullptr;
    for (const UnitIndex& unit : members_)
      if (part_[unit] == most && (lightest == nullptr || weights_[unit] < weights_[*lightest]))
        lightest = &unit;
    move(*lightest, part);
  }
}

// From the heaviest part to the lightest, units by what they cost there, as long as both come nearer to the
// mean.
void Partition::balance(double imbalance) {
  const double middle = mean(), low = middle * (1 - imbalance), high = middle * (1 + imbalance);
  for (Part round = 0; round < 8 * parts() + 64; ++round) {
    const auto heaviest =
        static_cast<Part>(std::max_element(part_weight_.begin(), part_weight_.end()) - part_weight_.begin());
    const auto lightest =
        static_cast<Part>(std::min_element(part_weight_.begin(), part_weight_.end()) - part_weight_.begin());
    if (part_weight_[heaviest] <= high && part_weight_[lightest] >= low) return;
    std::vector<std::pair<double, UnitIndex>> candidates;
    for (const UnitIndex unit : members_)
      if (part_[unit] == heaviest) candidates.emplace_back(change(unit, lightest), unit);
    std::sort(candidates.begin(), candidates.end());
    bool moved = false;
    for (const auto& [cost, unit] : candidates) {
      if (part_units_[heaviest] == 1 || part_weight_[heaviest] <= middle || part_weight_[lightest] >= middle)
        break;
      // A unit heavier than what lies between the two would only change which of them is the heavier one.
      if (weights_[unit] >= part_weight_[heaviest] - part_weight_[lightest]) continue;
      if (part_weight_[lightest] + weights_[unit] > high && part_weight_[lightest] >= low) continue;
      move(unit, lightest);
      moved = true;
    }
    if (!moved) return;
  }
}

// Moves that lessen cross bytes and keep the balance: to any part where there are few, else to those of the
// owners of what a unit refers to.
Status Partition::improve(double imbalance, std::stop_token stop) {
  constexpr int kPasses = 6;
  constexpr Part kFew = 16;
  const double middle = mean(), low = middle * (1 - imbalance), high = middle * (1 + imbalance);
  std::vector<Part> candidates(parts());
  std::iota(candidates.begin(), candidates.end(), Part{0});
  for (int pass = 0; pass < kPasses; ++pass) {
    std::size_t moves = 0;
    for (const UnitIndex unit : members_) {
      if (stop.stop_requested()) return fail(Code::timeout, "stopped while units were balanced");
      const Part from = part_[unit];
      if (part_units_[from] == 1 || part_weight_[from] - weights_[unit] < low) continue;
      if (parts() > kFew) {
        candidates.clear();
        for (const std::uint32_t item : sharing_.references(unit)) {
          const Part to = part_[sharing_.items()[item].owner];
          if (to != kNobody && std::find(candidates.begin(), candidates.end(), to) == candidates.end() &&
              candidates.size() < kFew)
            candidates.push_back(to);
        }
      }
      Part best = from;
      double best_change = 0;
      for (const Part to : candidates) {
        if (to == from || part_weight_[to] + weights_[unit] > high) continue;
        if (const double changed = change(unit, to); changed < best_change) {
          best_change = changed;
          best = to;
        }
      }
      if (best == from) continue;
      move(unit, best);
      ++moves;
    }
    if (moves == 0) break;
  }
  return {};
}

std::uint64_t Partition::objective() const {
  std::uint64_t sum = 0;
  users_.each([&](std::uint32_t item, Part part) {
    const Sharing::Item& what = sharing_.items()[item];
    if (part_[what.owner] != part) sum += what.bytes;
  });
  return sum;
}

std::vector<double> weights(const Profile& profile, const CounterTable& table,
                            std::span<const UnitIndex> members) {
  std::vector<double> weights(profile.units());
  std::vector<double> totals(table.size());
  double sum = 0;
  for (const UnitIndex unit : members) {
    std::fill(totals.begin(), totals.end(), 0.0);
    table.add(unit, totals);
    weights[unit] = totals[table.work()];
    sum += weights[unit];
  }
  if (sum > 0) return weights;
  for (const UnitIndex unit : members)
    weights[unit] = static_cast<double>(std::max<std::uint64_t>(1, profile.own_bytes(unit)));
  return weights;
}

// Runs of equal weight of an order, as the parts of `members`.
std::vector<Part> run_cut(std::span<const UnitIndex> order, std::span<const UnitIndex> members,
                          const std::vector<double>& weights, Part parts) {
  double sum = 0, before = 0;
  for (const UnitIndex unit : order) sum += weights[unit];
  std::vector<Part> of_unit(weights.size()), cut;
  for (const UnitIndex unit : order) {
    of_unit[unit] = std::min(parts - 1, static_cast<Part>((before + weights[unit] / 2) / sum * parts));
    before += weights[unit];
  }
  for (const UnitIndex unit : members) cut.push_back(of_unit[unit]);
  return cut;
}

// An item that many use costs its bytes once a part at most, however many links are cut: its links weigh so
// much less each.
Sharing damped(const Profile& profile, const Sharing& sharing, Part parts) {
  std::vector<std::uint32_t> users(profile.items());
  std::vector<std::uint64_t> own;
  std::vector<std::size_t> first{0};
  std::vector<std::uint32_t> references;
  for (UnitIndex unit = 0; unit < profile.units(); ++unit) {
    own.push_back(sharing.own_bytes(unit));
    for (const std::uint32_t item : sharing.references(unit)) {
      ++users[item];
      references.push_back(item);
    }
    first.push_back(references.size());
  }
  std::vector<Sharing::Item> items = sharing.items();
  for (std::uint32_t item = 0; item < profile.items(); ++item)
    if (users[item] + 1 > parts)
      items[item].bytes =
          static_cast<std::uint64_t>(static_cast<double>(items[item].bytes) * (parts - 1) / users[item]);
  return Sharing(std::move(own), std::move(first), std::move(references), std::move(items));
}

// Scotch's cut, over the units that did not fail.
Result<std::vector<Part>> sharing_cut(const Profile& profile, const Sharing& sharing,
                                      std::span<const UnitIndex> members, const std::vector<double>& weights,
                                      const BalanceRequest& request) {
  constexpr double kScale = 1e12;
  double sum = 0;
  for (const UnitIndex unit : members) sum += weights[unit];
  scotch::Graph graph = sharing_graph(damped(profile, sharing, request.shards));
  std::vector<std::uint32_t> place(profile.units(), std::numeric_limits<std::uint32_t>::max());
  graph.vertex_weights.clear();
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    place[members[i]] = i;
    graph.vertex_weights.push_back(static_cast<std::uint64_t>(weights[members[i]] / sum * kScale) + 1);
  }
  std::erase_if(graph.links, [&](const scotch::Graph::Link& link) {
    return place[link.a] >= members.size() || place[link.b] >= members.size();
  });
  for (scotch::Graph::Link& link : graph.links) {
    link.a = place[link.a];
    link.b = place[link.b];
  }
  return scotch::bisect(graph, request.shards, request.imbalance / 2, request.seed);
}

}  // namespace

Result<BalanceOutcome> balance_profile(const Profile& profile, const BalanceRequest& request) {
  FURLONG_CHECK(check_profile(profile, "the profile"));
  if (!(request.imbalance > 0 && request.imbalance < 1))
    return fail(Code::invalid, "the imbalance must be between 0 and 1, not {}", request.imbalance);
  std::vector<UnitIndex> members;
  for (UnitIndex unit = 0; unit < profile.units(); ++unit)
    if (profile.states[unit] != UnitState::failed) members.push_back(unit);
  if (request.shards == 0 || request.shards > members.size())
    return fail(Code::invalid, "{} units cannot be cut into {} shards that are not empty: give 1 to {}",
                members.size(), request.shards, members.size());
  const CounterTable table(profile);
  PackRequest limiting;  // for what the shards are predicted to cost; nothing is cut by it
  limiting.model = request.model;
  limiting.caps = {{std::string(kUnitCount), std::numeric_limits<double>::max()}};
  FURLONG_TRY(const internal::Limits limits, internal::Limits::make(table, limiting));
  const bool linked = profile.references || profile.touched;
  std::vector<std::uint64_t> own;
  for (UnitIndex unit = 0; unit < profile.units(); ++unit) own.push_back(profile.own_bytes(unit));
  Sharing sharing(std::move(own), std::vector<std::size_t>(profile.units() + 1), {},
                  std::vector<Sharing::Item>(profile.items()));
  if (linked) {
    FURLONG_TRY(sharing, profile_sharing(profile));
  }
  const std::vector<double> unit_weights = weights(profile, table, members);
  std::vector<std::vector<Part>> cuts{run_cut(members, members, unit_weights, request.shards)};
  if (linked && request.shards > 1) {
    cuts.push_back(run_cut(internal::order_by_items(profile, members, request.shards), members, unit_weights,
                           request.shards));
    if (members.size() <= kMostForScotch) {
      FURLONG_TRY(auto cut, sharing_cut(profile, sharing, members, unit_weights, request));
      cuts.push_back(std::move(cut));
    }
  }
  std::optional<Partition> best;
  for (const std::vector<Part>& cut : cuts) {
    Partition tried(profile, sharing, members, unit_weights, request.shards);
    tried.assign(cut);
    tried.fill_empty();
    tried.balance(request.imbalance);
    FURLONG_CHECK(tried.improve(request.imbalance, request.stop));
    tried.balance(request.imbalance);
    if (!best || tried.objective() < best->objective()) best.emplace(std::move(tried));
  }
  const Partition& partition = *best;

  BalanceOutcome outcome;
  outcome.cross_known = linked;
  outcome.objective_bytes = partition.objective();
  Plan& plan = outcome.plan;
  plan.store = profile.store;
  plan.executor = profile.executor;
  plan.executor_version = profile.executor_version;
  plan.sizing = limits.sizing();
  plan.order = fmt::format("profile, {} shards", request.shards);
  plan.seed = request.seed;
  plan.failed = profile.failed;
  plan.shards.resize(request.shards);
  for (const UnitIndex unit : members) plan.shards[partition.part(unit)].units.push_back(unit);
  // By first unit, so that ids do not tell of how the cut was found.
  std::sort(plan.shards.begin(), plan.shards.end(),
            [](const PlanShard& a, const PlanShard& b) { return a.units.front() < b.units.front(); });
  const double mean = partition.mean();
  outcome.lightest = std::numeric_limits<double>::max();
  NeededItems needed(profile, best_accounting(profile));
  std::vector<std::uint32_t> counted(profile.items());
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    PlanShard& shard = plan.shards[i];
    shard.id = static_cast<ShardId>(i);
    std::vector<double> totals(table.size());
    double weight = 0;
    for (const UnitIndex unit : shard.units) {
      weight += unit_weights[unit];
      table.add(unit, totals);
      for (const std::uint32_t item : needed.of(unit)) {
        if (counted[item] == i + 1) continue;
        counted[item] = static_cast<std::uint32_t>(i + 1);
        totals[table.item_bytes()] += static_cast<double>(profile.item_bytes[item]);
      }
    }
    internal::set_cost(shard, limits.predict(totals), limits.predicts(), table.any_measured());
    outcome.counters.push_back(table.counters(totals));
    outcome.lightest = std::min(outcome.lightest, weight / mean);
    outcome.heaviest = std::max(outcome.heaviest, weight / mean);
  }
  complete_plan(plan, sharing);
  return outcome;
}

}  // namespace furlong::shard
