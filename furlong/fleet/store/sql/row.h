#pragma once
// The numbers of a race as its row holds them in one blob (docs/formats/fleet-store.md). Pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "furlong/fleet/store/store.h"

namespace furlong::fleet::sql {

/// Verdict, pinned, the six numbers and the variants of `row`.
std::string pack_row(const RaceRow& row);
/// Sets those of `row`, its variants in `gains`. `corrupt` says at which byte.
Status unpack_row(std::string_view bytes, RaceRow& row, std::vector<PackedGain>& gains);
/// Only verdict, pinned and the six numbers.
Status unpack_head(std::string_view bytes, RaceRow& row);

/// 8 bytes, little end first; for no epoch 4 bytes, utc_day(ts_us), which stands for it in the key. `invalid`
/// for a text that is neither empty nor a hexadecimal number of at most 16 digits.
Result<std::string> pack_epoch(std::string_view text, std::int64_t ts_us);
Status unpack_epoch(ByteView bytes, RaceRow& row);
std::string epoch_text(const RaceRow& row);

}  // namespace furlong::fleet::sql
