#pragma once
// The words of sharding (docs/shards.md) as types: keys, units, claims, costs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"
#include "furlong/base/hash.h"

namespace furlong::shard {

/// Of an item: BLAKE2b-256 of its bytes. Of a unit: unit_key().
using Key = Digest;
/// A unit's place in its store's plain order.
using UnitIndex = std::uint32_t;

/// An atomic group of items that refers to items of other units.
struct Unit {
  Key key;
  std::string name;             ///< for people; no part of the key
  std::vector<Key> items;       ///< that it owns, in the executor's order
  std::vector<Key> references;  ///< items of other units that it directly refers to; sorted, none twice
};

/// Over the owned items in their order and the sorted references.
Key unit_key(const std::vector<Key>& items, const std::vector<Key>& references);

/// What a shard promises to do. Depends on the set of owned units alone: not on their order, not on a plan.
struct Claim {
  Digest owned;  ///< Merkle root over the sorted keys of the owned units
  Digest
      frontier;  ///< Merkle root over the sorted keys of the items that are directly referred to, not owned
  /// The name of the work, with the executor and its version.
  Digest digest(const std::string& executor, int version) const;
  bool operator==(const Claim&) const = default;
};

/// A Merkle root over leaves in the given order (leaves and inner nodes are hashed apart; none: a fixed
/// value).
Digest merkle_root(const std::vector<Digest>& leaves);

/// What the number of a shard's cost counts. Costs of different kinds are not compared.
enum class CostKind : std::uint8_t { unknown = 0, profile_units = 1, command_seconds = 2, work = 3 };
std::string_view cost_kind_name(CostKind kind);  ///< "work W"

/// What executing a claim costs, as the executor's meter tells.
struct Cost {
  double work = 0;                 ///< W, in the executor's own unit
  std::uint64_t record_bytes = 0;  ///< filled memory of the record, never reserved capacity
  double seconds = 0;              ///< wall time of the execution, reading of the store left out
  std::uint64_t peak_bytes = 0;  ///< memory of its own of the process that ran it, where measured; 0: unknown
  std::map<std::string, double>
      features;  ///< the executor's counters: columns of the costs CSV, input of models
};

}  // namespace furlong::shard
