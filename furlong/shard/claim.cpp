#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "furlong/shard/internal/key_hash.h"
#include "furlong/shard/store.h"

namespace furlong::shard {
namespace {

Error unowned(const Unit& unit, const Key& reference) {
  return fail(Code::invalid, "unit '{}' refers to the item {}, which no unit owns", unit.name,
              reference.hex());
}

struct Entry {
  bool owned = false;  ///< its channel; else the frontier
  bool verified = false;
  ByteView bytes;  ///< once verified
};
using Entries = std::unordered_map<Key, Entry, KeyHash>;

std::string_view channel(bool owned) { return owned ? "owned" : "frontier"; }

Error foreign(const Key& key) {
  return fail(Code::invalid, "the item {} is in neither channel of the claim (owned, frontier)", key.hex());
}

class FrozenItems : public ItemSource {
 public:
  FrozenItems(std::shared_ptr<const Store> store, Entries entries)
      : store_(std::move(store)), entries_(std::move(entries)) {}

  Result<ByteView> item(const Key& key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return foreign(key);
    if (!found->second.verified)
      return fail(Code::invalid, "the item {} of the channel '{}' was not read before the items were frozen",
                  key.hex(), channel(found->second.owned));
    return found->second.bytes;
  }

 private:
  const std::shared_ptr<const Store> store_;  // the map outlives what was borrowed from it
  const Entries entries_;                     // never written to again: any number of threads may read
};

class LazyItems : public ClaimItems {
 public:
  explicit LazyItems(std::shared_ptr<const Store> store) : store_(std::move(store)) {}

  Status add(UnitIndex index) override {
    FURLONG_TRY(const Unit unit, store_->unit(index));
    if (units_.contains(index)) return fail(Code::invalid, "unit '{}' is in the claim twice", unit.name);
    // Looked up first, so that a failure leaves the claim as it was.
    for (const Key& reference : unit.references) {
      if (entries_.contains(reference)) continue;
      FURLONG_TRY(const auto owner, store_->owner(reference));
      if (!owner) return unowned(unit, reference);
    }
    units_.insert(index);
    held_bytes_ +=
        sizeof(Unit) + unit.name.size() + sizeof(Key) * (unit.items.size() + unit.references.size());
    for (const Key& item : unit.items) entries_[item].owned = true;
    for (const Key& reference : unit.references) entries_.try_emplace(reference);
    return {};
  }

  Result<ByteView> item(const Key& key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return foreign(key);
    Entry& entry = found->second;
    if (entry.verified) return entry.bytes;
    const auto bytes = store_->raw_item(key);
    if (!bytes) return Error(bytes.error()).with(fmt::format("the channel '{}'", channel(entry.owned)));
    if (blake2b_256(*bytes) != key)
      return fail(Code::corrupt, "the item {} of the channel '{}': its {} bytes are not those of its key",
                  key.hex(), channel(entry.owned), bytes->size());
    entry.bytes = *bytes;
    entry.verified = true;
    resident_bytes_ += bytes->size();
    return entry.bytes;
  }

  std::uint64_t resident_bytes() const override { return resident_bytes_; }

  std::uint64_t held_bytes() const override {
    // An entry stands in a node of its own, with the link and the hash beside it.
    constexpr std::size_t kNode = sizeof(Entries::value_type) + 2 * sizeof(void*);
    return held_bytes_ + entries_.size() * kNode;
  }

  std::unique_ptr<ItemSource> freeze() const override {
    return std::make_unique<FrozenItems>(store_, entries_);
  }

 private:
  const std::shared_ptr<const Store> store_;
  Entries entries_;
  std::unordered_set<UnitIndex> units_;
  std::uint64_t resident_bytes_ = 0, held_bytes_ = 0;
};

}  // namespace

Result<Claim> make_claim(const Store& store, std::span<const UnitIndex> units) {
  if (units.empty()) return fail(Code::invalid, "a claim over no unit");
  const std::unordered_set<UnitIndex> members(units.begin(), units.end());
  std::vector<Key> owned;
  owned.reserve(units.size());
  std::set<Key> frontier;
  for (const UnitIndex index : units) {
    FURLONG_TRY(const Unit unit, store.unit(index));
    owned.push_back(unit.key);
    for (const Key& reference : unit.references) {
      if (frontier.contains(reference)) continue;
      FURLONG_TRY(const auto owner, store.owner(reference));
      if (!owner) return unowned(unit, reference);
      if (!members.contains(*owner)) frontier.insert(reference);
    }
  }
  std::sort(owned.begin(), owned.end());
  if (members.size() != units.size()) {
    std::set<UnitIndex> seen;
    for (const UnitIndex index : units)
      if (!seen.insert(index).second) {
        FURLONG_TRY(const Unit unit, store.unit(index));
        return fail(Code::invalid, "unit '{}' is in the claim twice", unit.name);
      }
  }
  return Claim{merkle_root(owned), merkle_root({frontier.begin(), frontier.end()})};
}

Result<std::unique_ptr<ClaimItems>> ClaimItems::open(std::shared_ptr<const Store> store,
                                                     std::span<const UnitIndex> units) {
  auto items = std::make_unique<LazyItems>(std::move(store));
  for (const UnitIndex unit : units) FURLONG_CHECK(items->add(unit));
  return std::unique_ptr<ClaimItems>(std::move(items));
}

}  // namespace furlong::shard
