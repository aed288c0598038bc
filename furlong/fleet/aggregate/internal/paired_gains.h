#pragma once
// Paired gains of some machines' races before and after a time, by the row of a tuning that holds for them.
// Internal to furlong/fleet/aggregate.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "furlong/fleet/aggregate/internal/machine.h"

namespace furlong::fleet::internal {

/// ln(1 + gain over base), by machine (of PairedGains::machines) and variant.
using LogGains = std::map<WordNumber, std::map<std::uint32_t, std::vector<double>>>;

/// Of one pinned row.
struct PinEvidence {
  LogGains before, after;
  std::map<WordNumber, std::uint64_t> won_before;  ///< races
};

struct PairedGains {
  SubjectData machines;  ///< machines alone: slots and labels
  std::map<std::pair<const record::TuningCard*, const record::TuningRow*>, PinEvidence> pins;
};

/// One subject's races, in the order of a scan. Not thread safe.
class PairedGainReader {
 public:
  /// Everything outlives it.
  PairedGainReader(KnownNames names, const std::vector<std::string>& words, const record::Tuning& tuning,
                   const SubjectRow& subject, std::int64_t split_us, PairedGains& into);
  void add(const RaceRow& row);
  void end();

 private:
  using Pin = std::pair<const record::TuningCard*, const record::TuningRow*>;
  struct Race {
    Pin pin;
    WordNumber slot = 0, winner = 0;
    std::uint64_t epoch = 0;
    bool has_epoch = false, after = false;
    std::vector<std::pair<WordNumber, double>> log_gains;
  };
  Pin pin_of(const RaceRow& row);
  bool takes_subject(const record::TuningRow& row) const;
  std::vector<std::pair<WordNumber, double>> log_gains_of(const RaceRow& row, bool per_watt) const;
  void drop_flood();
  void end_machine();

  const KnownNames names_;
  const std::vector<std::string>& words_;
  const record::Tuning& tuning_;
  const SubjectRow& subject_;
  const std::int64_t split_us_;
  PairedGains& into_;
  record::ProgramClass class_;
  std::map<std::pair<WordNumber, WordNumber>, Pin> pins_;  ///< by label and driver
  MachineEvidence machine_;
  std::vector<Race> races_;
  std::size_t values_ = 0;
};

}  // namespace furlong::fleet::internal
