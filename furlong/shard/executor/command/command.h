#pragma once
// The executor "command": a unit is a command with declared inputs and outputs. Its check is its job: both
// run the command, in a process tree whose memory is limited and measured from outside. The receipt is
// attested: it says what the outputs' hashes were. docs/shards.md, docs/formats/command-store.md.

#include <memory>

#include "furlong/shard/executor_kind.h"

namespace furlong::shard::command {

inline constexpr std::string_view kExecutorName = "command";
/// Of items, costs and receipts together.
inline constexpr int kExecutorVersion = 1;

/// Stateless; thread safe. Costs: work is processor seconds of the tree, seconds are the wall's, record and
/// peak bytes the tree's peak. A record's cap limits each tree.
std::unique_ptr<Executor> make_executor();

/// For the list of all executors.
ExecutorKind kind();

}  // namespace furlong::shard::command
