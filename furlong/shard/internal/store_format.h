#pragma once
// What stands in a store's tables (docs/formats/store.md), for the writer and the reader alike.

#include <array>
#include <string>
#include <string_view>

#include "furlong/shard/types.h"

namespace furlong::shard::internal {

inline constexpr int kStoreVersion = 1;
inline constexpr std::string_view kStoreFormat = "furlong store";

enum Table : std::size_t { kMeta, kItems, kUnits, kNames, kOwners };
inline constexpr std::array<const char*, 5> kTables{"meta", "items", "units", "names", "owners"};

/// The keys of the table meta. Numbers are decimal text.
inline constexpr std::string_view kFormatKey = "format", kVersionKey = "version", kExecutorKey = "executor",
                                  kExecutorVersionKey = "executor_version", kSettingsKey = "settings",
                                  kUnitsKey = "units", kDigestKey = "digest";

/// Big-endian, so that the table is in plain order.
std::array<std::uint8_t, 4> index_bytes(UnitIndex index);
/// A name may be longer than a key of a table can be.
Digest name_key(std::string_view name);

Bytes encode_unit(const Unit& unit);
/// `corrupt`, with the byte, for what encode_unit() did not write; nothing is allocated that the bytes do not
/// back.
Result<Unit> decode_unit(ByteView bytes);

}  // namespace furlong::shard::internal
