#pragma once
// From records to pairs of variants that differ in one knob alone. Internal to furlong/audit.

#include <map>
#include <string>
#include <vector>

#include "furlong/audit/audit.h"
#include "furlong/audit/internal/pool.h"

namespace furlong::audit::internal {

/// What one pair takes in one currency.
struct CostPair {
  int race = 0;
  double value = 0, beside = 0;
};

/// A value beside the default in one regime, as the records have it.
struct Pairs {
  Regime regime;
  std::vector<PairSample> rates;
  std::map<std::string, std::vector<PairSample>> by_context;  ///< by the variant with the default
  std::vector<PairSample> work_per_joule;  ///< of races for energy: log ratios, above 0 takes less
  std::map<Measure, std::vector<CostPair>> costs;
  std::vector<Fault> faults, defects;
  std::vector<int> races;  ///< with a pair timed or a fault; ascending, each once
};

/// All that the records hold about one value.
struct ValueEvidence {
  std::map<std::string, Pairs> regimes;  ///< by a key that sorts by card, driver, class
  int without_partner = 0;
  std::string partner;
  int fell_back = 0;
  int untimed = 0;
};

struct Collected {
  std::vector<std::vector<ValueEvidence>> values;  ///< by knob and value; the default's is empty
  Report report;                                   ///< with the counts and lost variants filled
};

Collected collect(const lattice::Lattice& lattice, std::span<const record::RaceRecord> records,
                  const Options& options);

}  // namespace furlong::audit::internal
