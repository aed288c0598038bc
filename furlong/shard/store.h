#pragma once
// The store: content-addressed items and the units made of them, in one LMDB file, mapped and never copied.
// docs/formats/store.md.

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/types.h"

namespace furlong::shard {

/// Writes a store anew. One thread at a time. The file appears under its name only at finish().
class StoreWriter {
 public:
  /// `settings`: the executor's own, JSON, part of nothing but what the executor makes of it.
  static Result<StoreWriter> create(const std::filesystem::path& file, const std::string& executor,
                                    int executor_version, const std::string& settings);
  ~StoreWriter();
  StoreWriter(StoreWriter&&) noexcept;
  StoreWriter& operator=(StoreWriter&&) noexcept;
  /// The same bytes twice are one item. `shared`: other units will refer to it. Those stand together in the
  /// file, so that a job which looks at a few of many units maps little else; it changes no key.
  Result<Key> add_item(ByteView bytes, bool shared = false);
  /// In the plain order. `invalid` for an item that another unit owns, for one that is not there, for a unit
  /// twice, for a name twice. References may be to items that come later; finish() checks them.
  Result<UnitIndex> add_unit(const std::string& name, std::vector<Key> items, std::vector<Key> references);
  /// `invalid` names a reference that nobody owns. `exhausted` when the disk is full: nothing is left behind.
  Status finish();

 private:
  struct Impl;
  explicit StoreWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Read only; thread safe; several processes may have it open.
class Store {
 public:
  /// `incompatible` for another version (found, expected), `corrupt` for a torn file, `unavailable`.
  static Result<std::shared_ptr<const Store>> open(const std::filesystem::path& file);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::string& executor() const;
  int executor_version() const;
  const std::string& settings() const;
  /// Over all unit keys in plain order, executor and settings.
  Digest digest() const;
  UnitIndex unit_count() const;
  /// Decoded from the map. `invalid` for an index that is not there, `corrupt`.
  Result<Unit> unit(UnitIndex index) const;
  Result<std::optional<UnitIndex>> find_unit(std::string_view name) const;
  /// Who owns an item.
  Result<std::optional<UnitIndex>> owner(const Key& item) const;
  Result<std::size_t> item_bytes(const Key& item) const;
  /// The mapped bytes as they are, not verified; valid as long as the store.
  Result<ByteView> raw_item(const Key& item) const;

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `incompatible` where the store is for another executor, or another version of it.
Status check_executor(const Store& store, const Executor& executor);

/// The claim over a set of units: roots over what they own and over the references they do not own. Any order
/// gives the same claim. `invalid` for none, for one twice, for an item that nobody owns.
Result<Claim> make_claim(const Store& store, std::span<const UnitIndex> units);

/// The items of a claim: faulted in on first use from the map and verified against their keys once. Holds the
/// store. item() is for one thread at a time; freeze() gives a view for many that never faults.
class ClaimItems : public ItemSource {
 public:
  static Result<std::unique_ptr<ClaimItems>> open(std::shared_ptr<const Store> store,
                                                  std::span<const UnitIndex> units);
  Result<ByteView> item(const Key& key) override = 0;
  /// One more unit of a growing claim (the scan).
  virtual Status add(UnitIndex unit) = 0;
  /// Bytes of what was faulted in so far.
  virtual std::uint64_t resident_bytes() const = 0;
  /// Filled memory that holding the claim takes: its units' lists of keys, as a job has them, and the
  /// channels. Many small units take more of it than of their record.
  virtual std::uint64_t held_bytes() const = 0;
  /// Thread safe; `invalid` with key and channel for what was not faulted in before. Valid as long as this.
  virtual std::unique_ptr<ItemSource> freeze() const = 0;
};

}  // namespace furlong::shard
