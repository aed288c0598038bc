#pragma once
// What a profile says about its units: who costs most, and what it takes to have a named unit with all that
// it rests on.

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/shard/profile_plan.h"

namespace furlong::shard {

/// One place of a leaderboard.
struct TopUnit {
  UnitIndex unit = 0;
  std::string name;
  double value = 0;
  double share = 0;  ///< of all units' sum
};
/// The `count` measured units with most of a counter: a feature of the profile, "work", "record_bytes",
/// "seconds", or "item_bytes" (of what a unit needs, by best_accounting()). Descending; ties in plain order.
/// `invalid` with the nearest names for what the profile does not count.
Result<std::vector<TopUnit>> top(const Profile& profile, std::string_view feature, std::size_t count);
std::string top_text(std::span<const TopUnit> units, std::string_view feature);
std::string top_json(std::span<const TopUnit> units, std::string_view feature);

struct SweepRequest {
  std::vector<std::string> roots;  ///< names of units; empty: those that no other unit refers to
  Sizing sizing;                   ///< budgets, as PackRequest has them; none: every root is feasible
  std::optional<Model> model;
  std::map<std::string, double> caps;
  std::size_t hot = 10;   ///< units with most W for which the cheapest root is looked for
  std::size_t picks = 5;  ///< diverse roots
  std::stop_token stop;
};

/// A root with its closure: itself, and every unit that it can reach by references.
struct SweepRoot {
  UnitIndex unit = 0;
  std::string name;
  std::uint32_t closure_units = 0;
  std::uint64_t closure_bytes = 0;  ///< of the items that the closure's units own
  Cost cost;                        ///< predicted of all of them as one shard
  double fill = 0;                  ///< share of the tightest budget or cap that is used; 0 without any
  bool feasible = true;
};
struct HotUnit {
  UnitIndex unit = 0;
  std::string name;
  double work = 0;
  /// Index into roots of the cheapest one whose closure has the unit, feasible ones first; absent: none has
  /// it.
  std::optional<std::size_t> root;
};
/// A root that adds most W to those picked before it.
struct Pick {
  std::size_t root = 0;   ///< index into roots
  double added_work = 0;  ///< of units that no earlier pick has
  double covered = 0;     ///< share of all units' W that the picks so far have
};
struct Sweep {
  std::vector<SweepRoot> roots;  ///< cheapest first by predicted W, ties in plain order
  std::vector<HotUnit> hot;      ///< by W, descending
  std::vector<Pick> picks;  ///< feasible roots alone, greedily: within 1 - 1/e of the best choice (Nemhauser,
                            ///< Wolsey and Fisher 1978)
};

/// `invalid` for a name that no unit has (with the nearest), or twice, and for a profile without references.
Result<Sweep> sweep(const Profile& profile, const SweepRequest& request);
std::string sweep_text(const Sweep& sweep);
std::string sweep_json(const Sweep& sweep);

}  // namespace furlong::shard
