#pragma once
// The executor "replay": a unit costs what a profile recorded, so that orders, scans, cuts and merges can be
// tried without executing anything. It has no job and no receipts. docs/shards.md,
// docs/formats/replay-items.md.

#include <memory>

#include "furlong/shard/executor_kind.h"

namespace furlong::shard::replay {

inline constexpr std::string_view kExecutorName = "replay";
/// Of items and costs together.
inline constexpr int kExecutorVersion = 1;

/// Stateless; thread safe. run() and verify() are `invalid`: a replay attests nothing.
std::unique_ptr<Executor> make_executor();

inline constexpr std::uint64_t kMostItemBytes = 1u << 30;
/// A store of the units of a profile (`input`). Items have the recorded sizes, all divided by one number
/// where they would fill more than `most_item_bytes`; a unit that failed is rejected again with the same
/// words, one that nobody measured with that. Errors of read_profile() and of StoreWriter; `timeout` when
/// stopped, with nothing left behind.
Result<StoreReport> make_replay_store(const StoreRequest& request,
                                      std::uint64_t most_item_bytes = kMostItemBytes);

/// For the list of all executors.
ExecutorKind kind();

}  // namespace furlong::shard::replay
