#pragma once
// The scan: executes units one after another and ends a segment where the measured cost reaches the budget.

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/journal.h"
#include "furlong/shard/plan.h"
#include "furlong/shard/progress.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

struct ScanOptions {
  Sizing sizing;
  unsigned workers = 1;
  /// Stops at the first unit that fails (each worker within one unit); else failed units are skipped.
  bool fail_fast = true;
  /// Units of a chunk; 0: chunk_units(). The cuts depend on it, not on the workers.
  std::uint32_t chunk_units = 0;
  /// The kind that its findings have in the journal: two scans of one plan have two.
  std::string findings = "segment";
  std::stop_token stop;
  Progress progress;
};

/// Of `units` in all: a sixteenth, but at least 8. Chunks are scanned independently of each other, so that
/// the partition does not depend on who scans them; merging takes back what their borders cost.
std::uint32_t chunk_units(std::size_t units);

/// floor((0.70 * box - 10 GiB) / cap), at least 1: memory is then workers * cap by construction. `cap_bytes`
/// 0: 1, since nothing bounds a record.
unsigned scan_workers(std::uint64_t box_bytes, std::uint64_t cap_bytes);

/// What a planner chose, and how it came to it.
struct ChosenWorkers {
  unsigned workers = 1;
  std::string text;
};
/// scan_workers(), on a box that the 10 GiB left alone would leave nothing of as many as half of the share
/// holds, and never more than `cores`.
ChosenWorkers choose_workers(std::uint64_t box_bytes, std::uint64_t cap_bytes, unsigned cores);

struct Segment {
  std::vector<UnitIndex> units;  ///< in order; none: all that it covers failed
  Cost cost;                     ///< of the running record
  /// One unit that reaches the cut by itself and is under the budget.
  bool alone = false;
};

struct ScanResult {
  std::vector<Segment> segments;   ///< in the order of the units, without empty ones
  std::vector<FailedUnit> failed;  ///< by unit
  bool complete = true;            ///< false: stopped at a failure
};

/// Scans `order` (each unit at most once). Segments that the journal has are not executed again, and new ones
/// are added to it. `timeout` when stopped, with the journal whole.
Result<ScanResult> scan(const std::shared_ptr<const Store>& store, const Executor& executor,
                        std::span<const UnitIndex> order, const ScanOptions& options, Journal& journal);

/// One claim executed cold, exactly as its job will execute it: the same units in the same order over the
/// same items. Found in the journal by the claim's digest, or executed and added to it. With `give_up`, no
/// cost as soon as it reaches the cut.
Result<std::optional<Cost>> price(const std::shared_ptr<const Store>& store, const Executor& executor,
                                  std::span<const UnitIndex> units, const Sizing& sizing, bool give_up,
                                  Journal& journal, std::stop_token stop = {});

}  // namespace furlong::shard
