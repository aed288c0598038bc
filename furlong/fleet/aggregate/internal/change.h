#pragma once
// One subject's rates in two windows, machine by machine. Internal to furlong/fleet/aggregate.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "furlong/fleet/aggregate/internal/machine.h"
#include "furlong/fleet/aggregate/internal/own_interval.h"

namespace furlong::fleet::internal {

/// How the rate of one variant changed on one machine, from all before to those with one driver after.
struct Change {
  std::uint32_t machine = 0;
  WordNumber variant = 0, driver = 0;
  double pct = 0;                ///< of the medians, of the same cards under the same power caps
  double before = 0, after = 0;  ///< medians, of the card and cap with most races
  std::uint32_t samples = 0;     ///< after
  std::uint32_t pairs = 0;       ///< races of the window that has fewer, added up over cards and caps
  Own own;                       ///< of the means
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
    WordNumber variant = 0, slot = 0;
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
  void drop_flood();
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
