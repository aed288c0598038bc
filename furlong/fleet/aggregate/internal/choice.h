#pragma once
// The choice: winner, candidates, pins, and what the tuning before has to say. docs/fleet-aggregation.md,
// "The choice". Pure functions. Internal to furlong/fleet/aggregate.

#include <string>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::fleet::internal {

/// What holds for one row from outside its races.
struct RowOrders {
  const Pin* pin = nullptr;                     ///< the operator's
  const record::TuningRow* previous = nullptr;  ///< of the same card, program, class and back end
  bool previous_source_seen = true;  ///< at least half of the machines report the source it was raced with
};

/// Fills variant, choice, why, candidates, carried.
void choose(RowEvidence& row, const RowOrders& orders, const AggregateOptions& options);

/// "+2.07% (1.80% to 2.30%) on 12 machines, 41 races"
std::string gain_text(const Estimate& gain);

/// Marks of the rows of one card the one of each program and class that the tuning takes.
struct RowMachines {
  RowEvidence* row = nullptr;
  std::vector<std::string> machines;  ///< ids of those that sent any record of it
  bool incumbent = false;             ///< the tuning before took this back end
};
/// The best median rate among those that more than half of the machines sent records of; where there is none
/// such, the one of most machines. The one before keeps its place until another's rates are clearly higher,
/// or (without a majority) until another has more than twice its machines.
void choose_back_ends(const std::vector<RowMachines>& rows, const AggregateOptions& options);

}  // namespace furlong::fleet::internal
