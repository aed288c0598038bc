#pragma once
// One simulated race, as numbers; record.cpp writes it down in both forms.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "furlong/fleet/simulate/internal/fleet.h"
#include "furlong/fleet/simulate/internal/world.h"
#include "furlong/fleet/store/race.h"

namespace furlong::fleet::internal {

struct DraftVariant {
  const TrueVariant* variant = nullptr;
  Exit exit = Exit::stayed;
  double rate = 0;  ///< 0: none
  double gain_pct = 0, half_pct = 0;
  double power_w = 0;  ///< 0: not told
  int heats = 0;       ///< 0: not timed
};

/// What a race is of, set by the caller; and how it went.
struct Draft {
  const SimulatedMachine* machine = nullptr;
  const Box* box = nullptr;
  std::size_t slot = 0;
  const TrueSubject* subject = nullptr;
  const std::string* driver = nullptr;
  std::int64_t true_ts_us = 0;
  std::uint64_t seed = 0;
  bool tuned = false, pinned = false;
  std::vector<std::size_t> order;  ///< numbers of the subject's variants, base first

  std::int64_t ts_us = 0;  ///< by the machine's clock, whole seconds
  RecordId id{};
  std::vector<DraftVariant> variants;
  std::size_t winner = 0;  ///< of `variants`
  record::Verdict verdict = record::Verdict::none;
  int heats = 0, over_budget = 0;
  double compile_ms = 0, bench_ms = 0, paused_ms = 0, total_ms = 0;
  double power_limit_w = 0;
};

/// Runs it: fills in everything below `order`.
void run_race(const SimulateOptions& options, const World& world, Draft& draft);

/// Texts that hang on the epoch: made once, used by all races of it.
struct DraftTexts {
  std::string_view epoch, source;
};
void write_down(const Draft& draft, const DraftTexts& texts, record::RaceRecord& record);
void write_down(const Draft& draft, const DraftTexts& texts, DecodedRace& race);

}  // namespace furlong::fleet::internal
