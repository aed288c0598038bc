#pragma once
// The executor "metamath": a unit's check verifies its proof with tables of unique rows, its job writes a
// certificate with one row per distinct step, and verifying reads the certificate row by row. docs/shards.md.

#include <memory>

#include "furlong/shard/executor_kind.h"

namespace furlong::shard::metamath {

inline constexpr std::string_view kExecutorName = "metamath";
/// Of items, costs and certificates together.
inline constexpr int kExecutorVersion = 1;

/// Stateless; thread safe.
std::unique_ptr<Executor> make_executor();

/// For the list of all executors.
ExecutorKind kind();

}  // namespace furlong::shard::metamath
