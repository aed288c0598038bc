#include "furlong/shard/types.h"

#include <array>
#include <set>

namespace furlong::shard {
namespace {

Hasher& add_number(Hasher& hasher, std::uint64_t number) {
  std::array<std::uint8_t, 8> bytes;
  store_le(bytes.data(), number);
  return hasher.add(bytes);
}

// With its length, so that no key can move from one list into its neighbour.
void add_keys(Hasher& hasher, const std::vector<Key>& keys) {
  add_number(hasher, keys.size());
  for (const Key& key : keys) hasher.add(key.bytes);
}

Digest leaf(const Digest& digest) {
  constexpr std::array<std::uint8_t, 1> kind{0};
  Hasher hasher;
  return hasher.add(kind).add(digest.bytes).finish();
}

Digest inner(const Digest& left, const Digest& right) {
  constexpr std::array<std::uint8_t, 1> kind{1};
  Hasher hasher;
  return hasher.add(kind).add(left.bytes).add(right.bytes).finish();
}

}  // namespace

Key unit_key(const std::vector<Key>& items, const std::vector<Key>& references) {
  Hasher hasher;
  hasher.add_field("furlong unit 1");
  add_keys(hasher, items);
  add_keys(hasher, references);
  return hasher.finish();
}

Digest Claim::digest(const std::string& executor, int version) const {
  Hasher hasher;
  hasher.add_field("furlong claim 1").add_field(executor);
  add_number(hasher, static_cast<std::uint64_t>(version));
  return hasher.add(owned.bytes).add(frontier.bytes).finish();
}

Result<Claim> claim_over(std::span<const Unit> units) {
  if (units.empty()) return fail(Code::mismatch, "a claim of no units");
  std::set<Key> owned, items, frontier;
  for (const Unit& unit : units) {
    if (unit_key(unit.items, unit.references) != unit.key)
      return fail(Code::mismatch, "the key of {} is not that of its items and references", unit.name);
    if (!owned.insert(unit.key).second) return fail(Code::mismatch, "{} is in the claim twice", unit.name);
    items.insert(unit.items.begin(), unit.items.end());
  }
  for (const Unit& unit : units)
    for (const Key& reference : unit.references)
      if (!items.contains(reference)) frontier.insert(reference);
  return Claim{merkle_root({owned.begin(), owned.end()}), merkle_root({frontier.begin(), frontier.end()})};
}

// Pairs from the left, an odd one out goes up as it is: the shape of RFC 6962, section 2.1, where leaves and
// inner nodes are told apart by the byte before them.
Digest merkle_root(const std::vector<Digest>& leaves) {
  if (leaves.empty()) return blake2b_256("furlong merkle root of nothing 1");
  std::vector<Digest> row;
  row.reserve(leaves.size());
  for (const Digest& digest : leaves) row.push_back(leaf(digest));
  while (row.size() > 1) {
    std::size_t out = 0;
    for (std::size_t i = 0; i + 1 < row.size(); i += 2) row[out++] = inner(row[i], row[i + 1]);
    if (row.size() % 2 == 1) row[out++] = row.back();
    row.resize(out);
  }
  return row.front();
}

std::string_view cost_kind_name(CostKind kind) {
  switch (kind) {
    case CostKind::unknown:
      return "unknown";
    case CostKind::profile_units:
      return "profile units";
    case CostKind::command_seconds:
      return "command seconds";
    case CostKind::work:
      return "work W";
  }
  return "unknown";
}

}  // namespace furlong::shard
