#pragma once
// One subject's rates in two windows, machine by machine. Internal to furlong/fleet/aggregate.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "furlong/fleet/aggregate/internal/machine.h"

namespace furlong::fleet::internal {

/// How the rate of one variant changed on one machine, from all before to those with one driver after.
struct Change {
  std::uint32_t machine = 0;
  WordNumber variant = 0, driver = 0;
  double pct = 0;                ///< of the medians, under the same power caps
  double before = 0, after = 0;  ///< medians, under the cap with most races
  std::uint32_t samples = 0;     ///< after
  /// Of logarithms: the difference of means, its variance (NaN: a window has one race), and the degrees of
  /// freedom of Student's t.
  double log_change = 0, log_variance = 0, degrees = 0;
};

struct SubjectChanges {
  SubjectData machines;  ///< machines alone: slots and labels
  std::vector<Change> changes;
  /// By variant and driver after: records by driver before.
  std::map<std::pair<WordNumber, WordNumber>, std::map<WordNumber, std::uint64_t>> drivers_before;
};

/// Not thread safe.
class ChangeReader {
 public:
  ChangeReader(KnownNames names, std::int64_t split_us, SubjectChanges& into)
      : names_(names), split_us_(split_us), into_(into) {}
  /// Rows in the order of a scan over both windows.
  void add(const RaceRow& row);
  void end();

 private:
  struct Timed {
    WordNumber variant = 0;
    Stratum stratum = 0;
    bool after = false;
    WordNumber driver = 0;
    float rate = absent;
  };
  struct Row {
    std::size_t first = 0, count = 0;
    std::uint64_t epoch = 0;
    WordNumber slot = 0, driver = 0;
    Stratum stratum = 0;
    bool has_epoch = false, after = false;
  };
  void end_machine();
  void read_rows();
  void compare(std::vector<Timed>::iterator begin, std::vector<Timed>::iterator end);

  const KnownNames names_;
  const std::int64_t split_us_;
  SubjectChanges& into_;
  MachineEvidence machine_;
  std::vector<Row> rows_;
  std::vector<std::pair<WordNumber, float>> values_;
  std::vector<Timed> timed_;
};

}  // namespace furlong::fleet::internal
