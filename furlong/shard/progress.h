#pragma once
// How long steps say how far they are.

#include <cstdint>
#include <functional>
#include <string>

namespace furlong::shard {

struct ProgressState {
  std::string step;          ///< "scan", "re-price", "merge", "order"
  std::uint64_t done = 0;    ///< of what the step counts (units, shards, attempts)
  std::uint64_t total = 0;   ///< 0: unknown
  double rate = 0;           ///< done a second since the step began
  double seconds_left = -1;  ///< below 0: unknown
  std::string heaviest;      ///< the unit or shard at work for longest now; empty: none
  double heaviest_seconds = 0;
};

/// Called by one thread at a time, not more often than a step's pace allows, always at its end; may be empty.
using Progress = std::function<void(const ProgressState&)>;

}  // namespace furlong::shard
