#pragma once
// The items of a campaign's store as bytes (docs/formats/campaign.md). Who judges receipts reads them by code
// of its own.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "furlong/base/bytes.h"
#include "furlong/base/hash.h"
#include "furlong/base/json_fwd.h"
#include "furlong/campaign/campaign_list.h"
#include "furlong/program/pack.h"

namespace furlong::campaign {

inline constexpr int kItemFormat = 1;

/// A program with everything that it refers to, as a pack. The signature is no part of it: whether the pack
/// is to be trusted was asked when the store was made.
struct PackItem {
  Digest content;  ///< pack_hash
  program::PackContents contents;
};

/// What the bytes of a dataset follow from, shared by all programs that read it.
struct DatasetItem {
  std::string recipe;       ///< Recipe::name
  Digest key;               ///< BLAKE2b-256 of Recipe::dataset_key
  std::uint64_t bytes = 0;  ///< on the device
  bool operator==(const DatasetItem&) const = default;
};

/// One race.
struct RaceItem {
  std::string program;  ///< its name
  Digest content;       ///< of its pack
  Digest source;        ///< Program::source_hash, as race records have it
  Problem problem;      ///< every parameter of the program, in its order
  std::string device;   ///< device_name
  RaceRules rules;
  bool operator==(const RaceItem&) const = default;
};

using Item = std::variant<PackItem, DatasetItem, RaceItem>;

/// The same item gives the same bytes.
Bytes encode(const PackItem& pack);
Bytes encode(const DatasetItem& dataset);
Bytes encode(const RaceItem& race);
/// `mismatch` for anything else; `incompatible` for another format. A pack's files are as they stand there,
/// not verified.
Result<Item> decode(ByteView bytes);

Json problem_json(const Problem& problem);
/// `mismatch` for what is no boolean, number or word.
Result<Problem> problem_of(const Json& object, std::string_view where);
/// "n=1024,m=8"
std::string problem_text(const Problem& problem);

}  // namespace furlong::campaign
