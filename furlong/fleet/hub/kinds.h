#pragma once
// How much that is new one machine may bring: programs on cards, and names. Those are kept for good, and
// every reader of the store holds them all, so that a machine that made up more and more of them would fill
// the hub's memory.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "furlong/fleet/hub/limits.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

struct KindsOptions {
  double programs = 1000;              ///< (card, program, class, …) at once that the fleet did not know
  double names = 50'000;               ///< slots, labels, drivers, sources, variants; likewise
  double days = 5;                     ///< in which as many again may come
  std::size_t most_machines = 10'000;  ///< that are remembered
};

/// Thread safe.
class Kinds {
 public:
  explicit Kinds(KindsOptions options);
  /// Refuses the lines that bring more than their machine may; the others' kinds are known from now on. What
  /// the store has is known: it is read once, by the first call. Errors of the store.
  Status check(IncomingBatch& batch, Store& store, std::int64_t now_ns);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Set = std::unordered_set<std::string, Hash, std::equal_to<>>;

  Status read(Store& store);
  Status check_race(const DecodedRace& race, std::string_view machine, std::int64_t now_ns);
  Status check_name(std::string_view name, std::string_view machine, std::int64_t now_ns);

  const KindsOptions options_;
  Buckets new_programs_, new_names_;  ///< of a machine
  std::mutex mutex_;
  bool read_ = false;
  Set programs_, names_;
};

}  // namespace furlong::fleet
