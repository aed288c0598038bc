#include "furlong/shard/sweep.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "furlong/base/json.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/shard/internal/profile_counts.h"

namespace furlong::shard {
namespace {

using internal::CounterTable;
using internal::Limits;
using internal::NeededItems;

Result<std::vector<double>> column(const Profile& profile, std::string_view feature) {
  const CounterTable table(profile);
  FURLONG_TRY(const std::size_t wanted, table.find(feature));
  std::vector<double> values(profile.units()), totals(table.size());
  NeededItems needed(profile, best_accounting(profile));
  for (UnitIndex unit = 0; unit < profile.units(); ++unit) {
    if (profile.states[unit] != UnitState::measured) continue;
    if (wanted == table.item_bytes()) {
      for (const std::uint32_t item : needed.of(unit))
        values[unit] += static_cast<double>(profile.item_bytes[item]);
      continue;
    }
    std::fill(totals.begin(), totals.end(), 0.0);
    table.add(unit, totals);
    values[unit] = totals[wanted];
  }
  return values;
}

}  // namespace

Result<std::vector<TopUnit>> top(const Profile& profile, std::string_view feature, std::size_t count) {
  FURLONG_CHECK(check_profile(profile, "the profile"));
  FURLONG_TRY(const std::vector<double> values, column(profile, feature));
  std::vector<UnitIndex> order;
  for (UnitIndex unit = 0; unit < profile.units(); ++unit)
    if (profile.states[unit] == UnitState::measured) order.push_back(unit);
  const std::size_t shown = std::min(count, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
      [&](UnitIndex a, UnitIndex b) { return std::pair(-values[a], a) < std::pair(-values[b], b); });
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  std::vector<TopUnit> units;
  for (std::size_t i = 0; i < shown; ++i)
    units.push_back(
        {order[i], profile.names[order[i]], values[order[i]], sum > 0 ? values[order[i]] / sum : 0});
  return units;
}

std::string top_text(std::span<const TopUnit> units, std::string_view feature) {
  Table table;
  table.column("place", Table::Align::right);
  table.column("unit");
  table.column(std::string(feature), Table::Align::right);
  table.column("share", Table::Align::right);
  for (std::size_t i = 0; i < units.size(); ++i)
    table.row({std::to_string(i + 1), one_line(units[i].name), fmt::format("{:.6g}", units[i].value),
               fmt::format("{:.2f}%", 100 * units[i].share)});
  return table.text();
}

std::string top_json(std::span<const TopUnit> units, std::string_view feature) {
  Json json;
  json["feature"] = feature;
  json["units"] = Json::array();
  for (const TopUnit& unit : units)
    json["units"].push_back(
        {{"unit", unit.unit}, {"name", unit.name}, {"value", unit.value}, {"share", unit.share}});
  return json_pretty(json);
}

namespace {

class Sweeping {
 public:
  Sweeping(const Profile& profile, const SweepRequest& request, const CounterTable& table)
      : profile_(profile),
        request_(request),
        table_(table),
        owners_(profile.owners()),
        mark_(profile.units()),
        work_(profile.units()) {
    std::vector<double> totals(table.size());
    for (UnitIndex unit = 0; unit < profile.units(); ++unit) {
      if (profile.states[unit] == UnitState::failed) continue;
      std::fill(totals.begin(), totals.end(), 0.0);
      table.add(unit, totals);
      work_[unit] = totals[table.work()];
    }
  }

  Result<Sweep> run();

 private:
  // The units of a closure, the root first; valid until the next call.
  std::span<const UnitIndex> closure(UnitIndex root) {
    ++walk_;
    reached_.assign(1, root);
    mark_[root] = walk_;
    for (std::size_t next = 0; next < reached_.size(); ++next)
      for (const std::uint32_t item : profile_.references->of(reached_[next])) {
        const UnitIndex owner = owners_[item];
        if (mark_[owner] == walk_) continue;
        mark_[owner] = walk_;
        reached_.push_back(owner);
      }
    return reached_;
  }
  Result<std::vector<UnitIndex>> roots() const;
  SweepRoot price(UnitIndex root, const Limits* limits);
  void find_hot(Sweep& sweep);
  Status pick(Sweep& sweep);

  const Profile& profile_;
  const SweepRequest& request_;
  const CounterTable& table_;
  const std::vector<UnitIndex> owners_;
  std::vector<std::uint32_t> mark_;  // the walk that came by last; roots and picks are fewer than 2^32
  std::vector<double> work_;         // of each unit
  std::uint32_t walk_ = 0;
  std::vector<UnitIndex> reached_;
};

Result<std::vector<UnitIndex>> Sweeping::roots() const {
  std::vector<UnitIndex> roots;
  if (request_.roots.empty()) {
    std::vector<bool> referred(profile_.units());
    for (const std::uint32_t item : profile_.references->items) referred[owners_[item]] = true;
    for (UnitIndex unit = 0; unit < profile_.units(); ++unit)
      if (!referred[unit]) roots.push_back(unit);
    return roots;
  }
  std::unordered_map<std::string_view, UnitIndex> units;
  for (UnitIndex unit = 0; unit < profile_.units(); ++unit) units.emplace(profile_.names[unit], unit);
  std::vector<bool> taken(profile_.units());
  for (const std::string& name : request_.roots) {
    const auto found = units.find(name);
    if (found == units.end())
      return fail(Code::invalid, "no unit is named '{}'{}", one_line(name),
                  did_you_mean(name, profile_.names));
    if (taken[found->second]) return fail(Code::invalid, "the root '{}' is named twice", one_line(name));
    taken[found->second] = true;
    roots.push_back(found->second);
  }
  return roots;
}

SweepRoot Sweeping::price(UnitIndex unit, const Limits* limits) {
  SweepRoot root;
  root.unit = unit;
  root.name = profile_.names[unit];
  std::vector<double> totals(table_.size());
  for (const UnitIndex member : closure(unit)) {
    ++root.closure_units;
    root.closure_bytes += profile_.own_bytes(member);
    if (profile_.states[member] == UnitState::failed)
      root.feasible = false;  // it cannot be had, whatever the budget
    else
      table_.add(member, totals);
  }
  totals[table_.item_bytes()] = static_cast<double>(root.closure_bytes);
  if (limits == nullptr) {
    root.cost.work = totals[table_.work()];
    root.cost.record_bytes = static_cast<std::uint64_t>(totals[table_.record_bytes()]);
    if (table_.seconds()) root.cost.seconds = totals[*table_.seconds()];
    return root;
  }
  root.cost = limits->predict(totals);
  root.fill = limits->fill(totals);
  root.feasible = root.feasible && limits->fit(totals);
  return root;
}

void Sweeping::find_hot(Sweep& sweep) {
  std::vector<UnitIndex> order(profile_.units());
  std::iota(order.begin(), order.end(), UnitIndex{0});
  const std::size_t count = std::min(request_.hot, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](UnitIndex a, UnitIndex b) { return std::pair(-work_[a], a) < std::pair(-work_[b], b); });
  for (std::size_t i = 0; i < count; ++i)
    sweep.hot.push_back({order[i], profile_.names[order[i]], work_[order[i]], std::nullopt});
  // Roots are cheapest first: the first feasible one wins, else the first.
  for (const bool feasible : {true, false})
    for (std::size_t r = 0; r < sweep.roots.size(); ++r) {
      if (sweep.roots[r].feasible != feasible) continue;
      closure(sweep.roots[r].unit);
      for (HotUnit& hot : sweep.hot)
        if (!hot.root && mark_[hot.unit] == walk_) hot.root = r;
    }
}

// What a root adds never grows as others are picked, so a stale figure is a bound: only the head of the queue
// is looked at anew (Minoux 1978).
Status Sweeping::pick(Sweep& sweep) {
  std::vector<bool> covered(profile_.units());
  const double all = std::accumulate(work_.begin(), work_.end(), 0.0);
  const auto adds = [&](std::size_t root) {
    double sum = 0;
    for (const UnitIndex unit : closure(sweep.roots[root].unit))
      if (!covered[unit]) sum += work_[unit];
    return sum;
  };
  struct Entry {
    double adds;
    std::size_t root, round;
    bool operator<(const Entry& other) const {
      return adds != other.adds ? adds < other.adds : root > other.root;  // of equals, the cheaper one
    }
  };
  std::priority_queue<Entry> queue;
  for (std::size_t r = 0; r < sweep.roots.size(); ++r)
    if (sweep.roots[r].feasible) queue.push({adds(r), r, 0});
  double sum = 0;
  while (sweep.picks.size() < request_.picks && !queue.empty()) {
    if (request_.stop.stop_requested()) return fail(Code::timeout, "stopped while roots were picked");
    const Entry entry = queue.top();
    queue.pop();
    if (entry.round < sweep.picks.size()) {
      queue.push({adds(entry.root), entry.root, sweep.picks.size()});
      continue;
    }
    if (!(entry.adds > 0)) break;
    for (const UnitIndex unit : closure(sweep.roots[entry.root].unit)) covered[unit] = true;
    sum += entry.adds;
    sweep.picks.push_back({entry.root, entry.adds, all > 0 ? sum / all : 0});
  }
  return {};
}

Result<Sweep> Sweeping::run() {
  FURLONG_TRY(const std::vector<UnitIndex> wanted, roots());
  std::optional<Limits> limits;
  if (request_.sizing.budget_bytes != 0 || request_.sizing.budget_seconds > 0 || !request_.caps.empty()) {
    PackRequest limiting;
    limiting.sizing = request_.sizing;
    limiting.model = request_.model;
    limiting.caps = request_.caps;
    FURLONG_TRY(limits, Limits::make(table_, limiting));
  }
  Sweep sweep;
  for (const UnitIndex unit : wanted) {
    if (request_.stop.stop_requested()) return fail(Code::timeout, "stopped while roots were priced");
    sweep.roots.push_back(price(unit, limits ? &*limits : nullptr));
  }
  std::sort(sweep.roots.begin(), sweep.roots.end(), [](const SweepRoot& a, const SweepRoot& b) {
    return std::pair(a.cost.work, a.unit) < std::pair(b.cost.work, b.unit);
  });
  find_hot(sweep);
  FURLONG_CHECK(pick(sweep));
  return sweep;
}

}  // namespace

Result<Sweep> sweep(const Profile& profile, const SweepRequest& request) {
  FURLONG_CHECK(check_profile(profile, "the profile"));
  if (!profile.references)
    return fail(Code::invalid,
                "the profile has no references, so nothing is known of closures: record it anew");
  const CounterTable table(profile);
  return Sweeping(profile, request, table).run();
}

std::string sweep_text(const Sweep& sweep) {
  Table roots;
  roots.column("root");
  for (const char* heading : {"units", "bytes", "W", "of budget"}) roots.column(heading, Table::Align::right);
  roots.column("feasible");
  for (const SweepRoot& root : sweep.roots)
    roots.row({one_line(root.name), std::to_string(root.closure_units), human_bytes(root.closure_bytes),
               fmt::format("{:.4g}", root.cost.work),
               root.fill > 0 ? fmt::format("{:.0f}%", 100 * root.fill) : "-", root.feasible ? "yes" : "no"});
  Table hot;
  hot.column("hot unit");
  hot.column("W", Table::Align::right);
  hot.column("cheapest root");
  for (const HotUnit& unit : sweep.hot)
    hot.row({one_line(unit.name), fmt::format("{:.4g}", unit.work),
             unit.root ? one_line(sweep.roots[*unit.root].name) : "-"});
  Table picks;
  picks.column("pick");
  picks.column("adds W", Table::Align::right);
  picks.column("covered", Table::Align::right);
  for (const Pick& pick : sweep.picks)
    picks.row({one_line(sweep.roots[pick.root].name), fmt::format("{:.4g}", pick.added_work),
               fmt::format("{:.1f}%", 100 * pick.covered)});
  return roots.text() + "\n" + hot.text() + "\n" + picks.text();
}

std::string sweep_json(const Sweep& sweep) {
  Json json;
  json["roots"] = Json::array();
  for (const SweepRoot& root : sweep.roots)
    json["roots"].push_back({{"unit", root.unit},
                             {"name", root.name},
                             {"closure_units", root.closure_units},
                             {"closure_bytes", root.closure_bytes},
                             {"work", root.cost.work},
                             {"record_bytes", root.cost.record_bytes},
                             {"seconds", root.cost.seconds},
                             {"fill", root.fill},
                             {"feasible", root.feasible}});
  json["hot"] = Json::array();
  for (const HotUnit& unit : sweep.hot) {
    Json entry{{"unit", unit.unit}, {"name", unit.name}, {"work", unit.work}};
    entry["root"] = unit.root ? Json(sweep.roots[*unit.root].name) : Json(nullptr);
    json["hot"].push_back(entry);
  }
  json["picks"] = Json::array();
  for (const Pick& pick : sweep.picks)
    json["picks"].push_back(
        {{"root", sweep.roots[pick.root].name}, {"added_work", pick.added_work}, {"covered", pick.covered}});
  return json_pretty(json);
}

}  // namespace furlong::shard
