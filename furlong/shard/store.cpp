#include "furlong/shard/store.h"

#include <limits>

#include "furlong/base/text.h"
#include "furlong/shard/internal/lmdb.h"
#include "furlong/shard/internal/store_format.h"

namespace furlong::shard {

namespace fs = std::filesystem;
using namespace internal;

struct Store::Impl {
  fs::path file;
  std::unique_ptr<lmdb::Reader> tables;
  std::string executor, settings;
  int executor_version = 0;
  UnitIndex units = 0;
  Digest digest;

  Result<std::string> meta(std::string_view key) const {
    FURLONG_TRY(const auto found, tables->get(kMeta, as_bytes(key)));
    if (!found) return fail(Code::corrupt, "{}: the store's {} is missing", file.string(), key);
    return std::string(as_text(*found));
  }
  Result<std::int64_t> meta_number(std::string_view key) const {
    FURLONG_TRY(const std::string text, meta(key));
    const auto number = parse_integer(text);
    if (!number)
      return fail(Code::corrupt, "{}: the store's {}: {}", file.string(), key, number.error().text());
    return *number;
  }
  Error damaged(Table table, const Digest& key) const {
    return fail(Code::corrupt, "{}: the entry {} of the table '{}' is damaged", file.string(), key.brief(),
                kTables[table]);
  }
  Result<std::optional<Place>> place(const Key& item) const {
    FURLONG_TRY(const auto found, tables->get(kIndex, item.bytes));
    if (!found) return std::optional<Place>();
    const auto place = decode_place(*found);
    if (!place || (place->owner != Place::kNobody && place->owner >= units)) return damaged(kIndex, item);
    return std::optional<Place>(*place);
  }
  Status check_version() const;
  Status read_meta();
};

Status Store::Impl::check_version() const {
  FURLONG_TRY(const auto format, tables->get(kMeta, as_bytes(kFormatKey)));
  if (!format || as_text(*format) != kStoreFormat)
    return fail(Code::invalid, "{}: not a store: its tables are somebody else's", file.string());
  FURLONG_TRY(const std::int64_t version, meta_number(kVersionKey));
  if (version != kStoreVersion)
    return fail(Code::incompatible, "{}: found a store of version {}, expected {}: {}", file.string(),
                version, kStoreVersion,
                version > kStoreVersion ? "take a newer Furlong" : "make it anew with furlong shard store");
  return {};
}

Status Store::Impl::read_meta() {
  FURLONG_CHECK(check_version());
  FURLONG_TRY(executor, meta(kExecutorKey));
  FURLONG_TRY(const std::int64_t made_by, meta_number(kExecutorVersionKey));
  if (made_by < 0 || made_by > std::numeric_limits<int>::max())
    return fail(Code::corrupt, "{}: an executor of version {} cannot be", file.string(), made_by);
  executor_version = static_cast<int>(made_by);
  FURLONG_TRY(settings, meta(kSettingsKey));
  FURLONG_TRY(const std::int64_t count, meta_number(kUnitsKey));
  FURLONG_TRY(const std::uint64_t rows, tables->count(kUnits));
  if (count < 0 || static_cast<std::uint64_t>(count) != rows)
    return fail(Code::corrupt, "{}: says {} units, but holds {}", file.string(), count, rows);
  units = static_cast<UnitIndex>(count);
  FURLONG_TRY(const std::string hex, meta(kDigestKey));
  const auto parsed = Digest::parse(hex);
  if (!parsed) return fail(Code::corrupt, "{}: the store's digest: {}", file.string(), parsed.error().text());
  digest = *parsed;
  return {};
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<std::shared_ptr<const Store>> Store::open(const fs::path& file) {
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  auto tables = lmdb::Reader::open(file, kTables);
  if (!tables && tables.error().code() == Code::invalid) {
    // A store of another version may have other tables; what it is of stands in the one that all have.
    auto meta = lmdb::Reader::open(file, std::span(kTables).first(1));
    if (!meta) return Error(std::move(tables).error());
    impl->tables = *std::move(meta);
    FURLONG_CHECK(impl->check_version());
    return Error(std::move(tables).error());
  }
  if (!tables) return Error(std::move(tables).error());
  impl->tables = *std::move(tables);
  FURLONG_CHECK(impl->read_meta());
  return std::shared_ptr<const Store>(new Store(std::move(impl)));
}

const std::string& Store::executor() const { return impl_->executor; }
int Store::executor_version() const { return impl_->executor_version; }
const std::string& Store::settings() const { return impl_->settings; }
Digest Store::digest() const { return impl_->digest; }
UnitIndex Store::unit_count() const { return impl_->units; }

Result<Unit> Store::unit(UnitIndex index) const {
  if (index >= impl_->units)
    return fail(Code::invalid, "{}: there is no unit {}: the store has {}", impl_->file.string(), index,
                impl_->units);
  FURLONG_TRY(const auto found, impl_->tables->get(kUnits, index_bytes(index)));
  if (!found) return fail(Code::corrupt, "{}: unit {} is missing", impl_->file.string(), index);
  auto unit = decode_unit(*found);
  if (!unit) return std::move(unit.error()).with(fmt::format("{}: unit {}", impl_->file.string(), index));
  return *std::move(unit);
}

Result<std::optional<UnitIndex>> Store::find_unit(std::string_view name) const {
  const Digest key = name_key(name);
  FURLONG_TRY(const auto found, impl_->tables->get(kNames, key.bytes));
  if (!found) return std::optional<UnitIndex>();
  if (found->size() != sizeof(UnitIndex) || load_le<UnitIndex>(found->data()) >= impl_->units)
    return impl_->damaged(kNames, key);
  return std::optional<UnitIndex>(load_le<UnitIndex>(found->data()));
}

Result<std::optional<UnitIndex>> Store::owner(const Key& item) const {
  FURLONG_TRY(const auto place, impl_->place(item));
  if (!place || place->owner == Place::kNobody) return std::optional<UnitIndex>();
  return std::optional<UnitIndex>(place->owner);
}

Result<std::size_t> Store::item_bytes(const Key& item) const {
  FURLONG_TRY(const ByteView bytes, raw_item(item));
  return bytes.size();
}

Result<ByteView> Store::raw_item(const Key& item) const {
  FURLONG_TRY(const auto place, impl_->place(item));
  if (!place) return fail(Code::invalid, "{}: there is no item {}", impl_->file.string(), item.hex());
  const Table table = place->shared ? kShared : kItems;
  FURLONG_TRY(const auto found, impl_->tables->get(table, index_bytes(place->number)));
  if (!found)
    return fail(Code::corrupt, "{}: the item {} is not where the index has it", impl_->file.string(),
                item.hex());
  return *found;
}

Status check_executor(const Store& store, const Executor& executor) {
  if (store.executor() == executor.name() && store.executor_version() == executor.version()) return {};
  return fail(Code::incompatible, "the store is for the executor {} {}, not {} {}: make it anew",
              store.executor(), store.executor_version(), executor.name(), executor.version());
}

}  // namespace furlong::shard
