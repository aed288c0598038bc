#pragma once
// What a plan would mean before it runs: how even its shards are, what they share, and how long it takes on
// so many runners.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "furlong/shard/plan.h"

namespace furlong::shard {

/// A plan on P runners, each taking the longest shard that is left (longest processing time first; Graham
/// 1969: at most 4/3 of the best schedule).
struct RunnerTime {
  std::uint32_t runners = 0;
  double wall = 0;        ///< until the last shard ends
  double bound = 0;       ///< no schedule is shorter: the mean load, or the longest shard
  double efficiency = 0;  ///< share of the runners' time that is used
};

struct WhatIf {
  std::uint32_t shards = 0;
  std::uint64_t units = 0;
  std::uint32_t failed = 0;  ///< units in no shard
  /// What lengths count: "s" where the plan tells seconds; else the unit of its costs ("W"), or "units" where
  /// they are unknown: relative, then.
  std::string unit;
  double total = 0, longest = 0;
  double imbalance = 0;  ///< the longest shard over the mean one; 0 without shards
  std::uint64_t own_bytes = 0, cross_bytes = 0;
  std::uint64_t largest_bytes = 0;  ///< predicted peak of the largest job; 0: the plan does not tell
  std::vector<RunnerTime> times;    ///< in the order asked for
};

/// Lengths: the plan's seconds per W where it was fitted, else the seconds of the checks, else the costs.
/// `invalid` for no runners.
Result<WhatIf> what_if(const Plan& plan, std::span<const std::uint32_t> runners);
std::string what_if_text(const WhatIf& report);  ///< for people
std::string what_if_json(const WhatIf& report);  ///< one object, deterministic

}  // namespace furlong::shard
