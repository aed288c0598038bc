#include "furlong/shard/merge.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "furlong/shard/internal/tasks.h"
#include "furlong/shard/pace.h"
#include "furlong/shard/scan.h"

namespace furlong::shard {
namespace {

std::string describe(const std::vector<UnitIndex>& units) {
  return fmt::format("{} units from unit {} on", units.size(), units.front());
}

std::vector<std::size_t> indices(std::size_t count) {
  std::vector<std::size_t> list(count);
  for (std::size_t i = 0; i < count; ++i) list[i] = i;
  return list;
}

}  // namespace

Status price_shards(const std::shared_ptr<const Store>& store, const Executor& executor,
                    std::vector<PricedShard>& shards, const PriceOptions& options, Journal& journal) {
  if (shards.empty()) return {};
  const unsigned workers = std::max(1u, options.workers);
  Pace pace("re-price", shards.size(), options.progress);
  TaskPool<std::size_t> pool(workers, indices(shards.size()));
  const Status status = run_tasks<std::size_t>(pool, workers, [&](unsigned, std::size_t& i) -> Status {
    const std::uint64_t running = pace.begin(describe(shards[i].units));
    auto cost = price(store, executor, shards[i].units, options.sizing, false, journal, options.stop);
    pace.finish(running);
    if (!cost) return cost.error();
    shards[i].cost = **cost;  // without giving up there is one; each worker writes to its own shard
    pace.advance(1);
    return {};
  });
  pace.end();
  FURLONG_CHECK(journal.sync());
  return status;
}

namespace {

struct Pair {
  std::size_t a, b;
  bool neighbours;
  std::uint64_t shared_bytes;
};

// Items that more shards than this use tell no pair from another.
constexpr std::size_t kCommon = 64;

class Merging {
 public:
  Merging(const std::shared_ptr<const Store>& store, const Executor& executor, const Sharing& sharing,
          std::span<const UnitIndex> order, std::vector<PricedShard>& shards, const PriceOptions& options,
          Journal& journal)
      : store_(store),
        executor_(executor),
        sharing_(sharing),
        shards_(shards),
        options_(options),
        journal_(journal),
        pace_("merge", 0, options.progress) {
    place_.resize(sharing.units());
    for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = i;
  }

  Result<MergeReport> run();

 private:
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> shared() const;
  std::vector<Pair> candidates() const;
  bool plausible(const PricedShard& a, const PricedShard& b) const;
  std::vector<UnitIndex> joined(std::size_t a, std::size_t b) const;
  // A set of units is known by its least one and its size: shards are disjoint, and only ever grow.
  using Name = std::pair<UnitIndex, std::size_t>;
  Name name(std::size_t shard) const {
    const auto& units = shards_[shard].units;
    return {*std::min_element(units.begin(), units.end()), units.size()};
  }
  Status attempt(const std::vector<Pair>& pairs);

  const std::shared_ptr<const Store>& store_;
  const Executor& executor_;
  const Sharing& sharing_;
  std::vector<PricedShard>& shards_;
  const PriceOptions& options_;
  Journal& journal_;
  Pace pace_;
  std::vector<std::size_t> place_;
  std::set<std::pair<Name, Name>> refused_;
  MergeReport report_;
  std::uint32_t refused_in_a_row_ = 0;
};

// Bytes of the items that two shards both use: refer to, or own while the other refers to them.
std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> Merging::shared() const {
  std::vector<std::size_t> shard_of(sharing_.units(), shards_.size());
  for (std::size_t s = 0; s < shards_.size(); ++s)
    for (const UnitIndex unit : shards_[s].units) shard_of[unit] = s;
  std::vector<std::vector<std::size_t>> users(sharing_.items().size());
  for (std::size_t s = 0; s < shards_.size(); ++s)
    for (const UnitIndex unit : shards_[s].units)
      for (const std::uint32_t item : sharing_.references(unit))
        if (users[item].empty() || users[item].back() != s) users[item].push_back(s);
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> bytes;
  for (std::size_t item = 0; item < users.size(); ++item) {
    const std::size_t owner = shard_of[sharing_.items()[item].owner];
    if (owner < shards_.size()) users[item].push_back(owner);
    std::sort(users[item].begin(), users[item].end());
    users[item].erase(std::unique(users[item].begin(), users[item].end()), users[item].end());
    if (users[item].size() > kCommon) continue;
    for (std::size_t i = 0; i < users[item].size(); ++i)
      for (std::size_t j = i + 1; j < users[item].size(); ++j)
        bytes[{users[item][i], users[item][j]}] += sharing_.items()[item].bytes;
  }
  return bytes;
}

bool Merging::plausible(const PricedShard& a, const PricedShard& b) const {
  if (a.alone || b.alone) return false;
  const Sizing& s = options_.sizing;
  if (executor_.independent()) return !s.reaches_cut(executor_.join(a.cost, b.cost));
  const auto fits = [&](double sum, double budget, double base) {
    return budget <= 0 || sum - 2 * base <= kMergeSumLimit * (s.usable * budget - base);
  };
  return fits(s.predicted_bytes(a.cost) + s.predicted_bytes(b.cost), static_cast<double>(s.budget_bytes),
              static_cast<double>(s.base_bytes)) &&
         fits(s.predicted_seconds(a.cost) + s.predicted_seconds(b.cost), s.budget_seconds, s.base_seconds);
}

// Neighbours first, then by the bytes that they share; what was refused is not tried again.
std::vector<Pair> Merging::candidates() const {
  std::vector<Pair> pairs;
  const auto bytes = shared();
  const auto shared_bytes = [&](std::size_t a, std::size_t b) {
    const auto found = bytes.find({a, b});
    return found == bytes.end() ? 0 : found->second;
  };
  const auto add = [&](std::size_t a, std::size_t b, bool neighbours) {
    if (plausible(shards_[a], shards_[b]) && !refused_.contains({name(a), name(b)}))
      pairs.push_back({a, b, neighbours, shared_bytes(a, b)});
  };
  for (std::size_t s = 0; s + 1 < shards_.size(); ++s) add(s, s + 1, true);
  std::vector<std::vector<std::pair<std::uint64_t, std::size_t>>> partners(shards_.size());
  for (const auto& [pair, amount] : bytes) {
    if (pair.second == pair.first + 1 || amount == 0 || !plausible(shards_[pair.first], shards_[pair.second]))
      continue;
    partners[pair.first].push_back({amount, pair.second});
    partners[pair.second].push_back({amount, pair.first});
  }
  std::set<std::pair<std::size_t, std::size_t>> chosen;
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    std::sort(partners[s].begin(), partners[s].end(), [](const auto& x, const auto& y) {
      return std::pair(y.first, x.second) < std::pair(x.first, y.second);
    });
    if (partners[s].size() > kMergePartners) partners[s].resize(kMergePartners);
    for (const auto& [amount, other] : partners[s]) chosen.insert({std::min(s, other), std::max(s, other)});
  }
  for (const auto& [a, b] : chosen) add(a, b, false);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
    if (x.neighbours != y.neighbours) return x.neighbours;
    return x.shared_bytes > y.shared_bytes;
  });
  return pairs;
}

std::vector<UnitIndex> Merging::joined(std::size_t a, std::size_t b) const {
  std::vector<UnitIndex> units = shards_[a].units;
  units.insert(units.end(), shards_[b].units.begin(), shards_[b].units.end());
  std::sort(units.begin(), units.end(), [&](UnitIndex x, UnitIndex y) { return place_[x] < place_[y]; });
  return units;
}

// Disjoint pairs, all at once; the merged shard stands where its first half stood.
Status Merging::attempt(const std::vector<Pair>& pairs) {
  struct Trial {
    std::vector<UnitIndex> units;
    std::optional<Cost> cost;
    bool done = false;
  };
  std::vector<Trial> trials(pairs.size());
  const unsigned workers = std::max(1u, options_.workers);
  pace_.add_total(pairs.size());
  TaskPool<std::size_t> pool(workers, indices(pairs.size()));
  const Status status = run_tasks<std::size_t>(pool, workers, [&](unsigned, std::size_t& i) -> Status {
    trials[i].units = joined(pairs[i].a, pairs[i].b);
    const std::uint64_t running = pace_.begin(describe(trials[i].units));
    auto cost = price(store_, executor_, trials[i].units, options_.sizing, true, journal_, options_.stop);
    pace_.finish(running);
    if (!cost) return cost.error();
    trials[i].cost = *cost;
    trials[i].done = true;
    pace_.advance(1);
    return {};
  });
  std::set<std::size_t> gone;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!trials[i].done) continue;
    ++report_.attempts;
    if (!trials[i].cost) {
      ++report_.refused;
      ++refused_in_a_row_;
      refused_.insert({name(pairs[i].a), name(pairs[i].b)});
      continue;
    }
    ++report_.merged;
    refused_in_a_row_ = 0;
    shards_[pairs[i].a].units = std::move(trials[i].units);
    shards_[pairs[i].a].cost = *trials[i].cost;
    gone.insert(pairs[i].b);
  }
  std::size_t out = 0;
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    if (gone.contains(s)) continue;
    if (out != s) shards_[out] = std::move(shards_[s]);
    ++out;
  }
  shards_.resize(out);
  return status;
}

Result<MergeReport> Merging::run() {
  for (; report_.passes < kMostMergePasses; ++report_.passes) {
    const std::vector<Pair> pairs = candidates();
    report_.fixpoint = pairs.empty();
    if (pairs.empty() || refused_in_a_row_ >= kMostRefusals) break;
    std::vector<Pair> disjoint;
    std::set<std::size_t> taken;
    for (const Pair& pair : pairs) {
      if (taken.contains(pair.a) || taken.contains(pair.b)) continue;
      taken.insert({pair.a, pair.b});
      disjoint.push_back(pair);
    }
    FURLONG_CHECK(attempt(disjoint));
  }
  pace_.end();
  FURLONG_CHECK(journal_.sync());
  return report_;
}

}  // namespace

Result<MergeReport> merge(const std::shared_ptr<const Store>& store, const Executor& executor,
                          const Sharing& sharing, std::span<const UnitIndex> order,
                          std::vector<PricedShard>& shards, const PriceOptions& options, Journal& journal) {
  return Merging(store, executor, sharing, order, shards, options, journal).run();
}

}  // namespace furlong::shard
