#pragma once
// One unit checked, or raced.

#include <memory>
#include <string>

#include "furlong/campaign/internal/stage.h"
#include "furlong/record/record.h"
#include "furlong/shard/executor.h"

namespace furlong::campaign {

/// What became of one unit.
struct UnitRun {
  shard::Key unit;
  std::string name;
  shard::Cost check, job;
  bool raced = false;  ///< false: a shared program or dataset
  RaceItem item;
  record::RaceRecord record;
  std::string sentence, reference;
};

/// Buffers and dataset that one race of a job leaves to the next. Must go before the stage.
struct Leftover {
  race::Kept kept;
  std::string device, dataset;
  void drop() { *this = {}; }
};

/// Base compiled, gated and launched; nothing for a unit of what is shared. `mismatch`: base does not compile
/// or failed its gate; `exhausted`: over the cap; `timeout`: stopped; else as Stage::prepare.
Result<shard::Cost> check_unit(const shard::Unit& unit, shard::ItemSource& items, Stage& stage);

/// The whole race. Errors as check_unit.
Result<UnitRun> race_unit(const shard::Unit& unit, shard::ItemSource& items, Stage& stage,
                          Leftover& leftover);

shard::Cost join_costs(const shard::Cost& record, const shard::Cost& unit);

}  // namespace furlong::campaign
