#pragma once
// The body of a receipt (docs/formats/command-store.md): what writes it, and what judges it by code of its
// own.

#include <span>
#include <stop_token>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/executor/command/internal/execute.h"

namespace furlong::shard::command {

inline constexpr int kReceiptFormat = 1;

Bytes write_receipt_body(std::span<const UnitRun> runs);

/// Whether `body` says of each unit, once and of no other, that its command ended well with just the outputs
/// that its item names, and whether the files that are there now are those: `mismatch` names what is not.
/// With options.sample below 1 only the files of that share of the units are read.
Status check_receipt_body(ByteView body, std::span<const Unit> units, ItemSource& items,
                          const VerifyOptions& options);

}  // namespace furlong::shard::command
