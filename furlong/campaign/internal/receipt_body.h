#pragma once
// The body of a receipt (docs/formats/campaign.md): what writes it, and what judges it by code of its own.

#include <cstdint>
#include <span>

#include "furlong/campaign/campaign.h"
#include "furlong/campaign/internal/execute.h"
#include "furlong/shard/executor.h"

namespace furlong::campaign {

inline constexpr int kReceiptFormat = 1;

Bytes write_receipt_body(std::span<const UnitRun> runs);

/// Whether `body` has of each unit, once and of no other, a race record that is of its program, problem and
/// device, with a decision that follows from its own figures; `mismatch` names what is not. Then, of the
/// share options.sample of the units and where the card that was raced is here, whether the winner passes its
/// gate again on fresh inputs. Devices are opened for that alone.
Status check_receipt_body(ByteView body, std::span<const shard::Unit> units, shard::ItemSource& items,
                          const shard::VerifyOptions& options, const MakeDevices& devices);

}  // namespace furlong::campaign
