#pragma once
// What stands in a store's tables (docs/formats/store.md), for the writer and the reader alike.

#include <array>
#include <string>
#include <string_view>

#include "furlong/base/hash.h"
#include "furlong/shard/types.h"

namespace furlong::shard::internal {

inline constexpr int kStoreVersion = 2;
inline constexpr std::string_view kStoreFormat = "furlong store";

enum Table : std::size_t { kMeta, kItems, kShared, kIndex, kUnits, kNames };
inline constexpr std::array<const char*, 6> kTables{"meta", "items", "shared", "index", "units", "names"};

/// Where an item stands and who owns it: an entry of the table index, by the item's key.
struct Place {
  static constexpr std::uint32_t kNobody = 0xFFFFFFFF;
  std::uint32_t number = 0;  ///< of the item within its table, in the order of being added
  bool shared = false;       ///< its table
  UnitIndex owner = kNobody;
};
std::array<std::uint8_t, 8> encode_place(const Place& place);
/// `corrupt` for another length.
Result<Place> decode_place(ByteView bytes);

/// The keys of the table meta. Numbers are decimal text.
inline constexpr std::string_view kFormatKey = "format", kVersionKey = "version", kExecutorKey = "executor",
                                  kExecutorVersionKey = "executor_version", kSettingsKey = "settings",
                                  kUnitsKey = "units", kDigestKey = "digest";

/// The beginning of a store's digest; the keys of all units follow, in plain order.
Hasher store_digest_head(const std::string& executor, int executor_version, const std::string& settings);

/// Big-endian, so that the table is in plain order.
std::array<std::uint8_t, 4> index_bytes(UnitIndex index);
/// A name may be longer than a key of a table can be.
Digest name_key(std::string_view name);

Bytes encode_unit(const Unit& unit);
/// `corrupt`, with the byte, for what encode_unit() did not write; nothing is allocated that the bytes do not
/// back.
Result<Unit> decode_unit(ByteView bytes);

}  // namespace furlong::shard::internal
