#pragma once
// What an executor reports while it runs, and the cap on the record that is enforced inside of it.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "furlong/shard/types.h"

namespace furlong::shard {

/// Counts one running record. One thread at a time. Tentative: what was counted since begin_unit() is dropped
/// by rollback(), so that a rejected unit leaves no mark.
class Meter {
 public:
  /// `cap_bytes`: of the record; 0: none.
  explicit Meter(std::uint64_t cap_bytes = 0) : cap_bytes_(cap_bytes) {}

  void begin_unit();
  void commit();
  void rollback();

  /// Filled memory of the record, before the executor takes it. `exhausted` ("the record's cap of …") once
  /// the sum is over the cap: the executor stops at that charge, so the record overshoots by at most one. A
  /// trip lasts until rollback(), and nothing more is counted during it.
  Status charge(std::uint64_t bytes);
  void release(std::uint64_t bytes);
  /// One of the executor's counters; it may be any of those it names.
  void count(const std::string& feature, double amount);
  /// An item that was really consulted.
  void touch(const Key& item);

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t cap_bytes() const { return cap_bytes_; }
  bool tripped() const { return tripped_; }
  const std::map<std::string, double>& features() const { return features_; }
  /// By all units committed and the one that runs.
  const std::set<Key>& touched() const { return touched_; }
  /// By the unit begun last, also what others had touched before; sorted (Record::last_touched).
  std::vector<Key> last_touched() const { return {last_touched_.begin(), last_touched_.end()}; }

 private:
  std::uint64_t cap_bytes_;
  std::uint64_t bytes_ = 0, mark_bytes_ = 0;
  bool tripped_ = false;
  std::map<std::string, double> features_, mark_features_;
  std::set<Key> touched_, last_touched_;
  std::vector<Key> touched_since_mark_;  // first by the running unit
};

}  // namespace furlong::shard
