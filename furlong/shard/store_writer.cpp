#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <unordered_map>

#include "furlong/base/text.h"
#include "furlong/shard/internal/key_hash.h"
#include "furlong/shard/internal/lmdb.h"
#include "furlong/shard/internal/store_format.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

namespace fs = std::filesystem;
using namespace internal;

struct StoreWriter::Impl {
  fs::path file, temporary;
  std::unique_ptr<lmdb::Writer> tables;
  std::string executor, settings;
  int executor_version = 0;
  UnitIndex units = 0;
  std::array<std::uint32_t, 2> items{};  // in the tables items and shared
  Hasher digest;
  // References that nobody owned when they were made, with the first unit that made them.
  std::unordered_map<Key, UnitIndex, KeyHash> open_references;

  ~Impl() {
    tables.reset();
    std::error_code ignored;
    if (!temporary.empty()) fs::remove(temporary, ignored);
  }

  Status put_meta(std::string_view key, std::string_view value) {
    return tables->put(kMeta, as_bytes(key), as_bytes(value));
  }
  Result<bool> has(Table table, const Digest& key) {
    FURLONG_TRY(const auto found, tables->get(table, key.bytes));
    return found.has_value();
  }
  Result<std::optional<Place>> place(const Key& item) {
    FURLONG_TRY(const auto found, tables->get(kIndex, item.bytes));
    if (!found) return std::optional<Place>();
    FURLONG_TRY(const Place place, decode_place(*found));
    return std::optional<Place>(place);
  }
  Result<bool> owned(const Key& item) {
    FURLONG_TRY(const auto found, place(item));
    return found && found->owner != Place::kNobody;
  }
  Result<std::string> name_of(UnitIndex index) {
    FURLONG_TRY(const auto found, tables->get(kUnits, index_bytes(index)));
    if (!found) return fail(Code::internal, "{}: unit {} is gone", file.string(), index);
    FURLONG_TRY(const Unit unit, decode_unit(*found));
    return unit.name;
  }
  Status check(const Unit& unit);
};

// All that can be wrong with a unit, before anything of it is written.
Status StoreWriter::Impl::check(const Unit& unit) {
  if (units == std::numeric_limits<UnitIndex>::max())
    return fail(Code::exhausted, "{}: a store holds {} units at most", file.string(), units);
  if (!is_valid_utf8(unit.name) || unit.name.empty())
    return fail(Code::invalid, "unit {}: its name must be text in UTF-8, and not empty", units);
  if (unit.items.empty()) return fail(Code::invalid, "unit '{}' owns no item", unit.name);
  FURLONG_TRY(const bool named, has(kNames, name_key(unit.name)));
  if (named) return fail(Code::invalid, "there are two units of the name '{}'", unit.name);
  std::vector<Key> sorted = unit.items;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return fail(Code::invalid, "unit '{}' owns the item {} twice", unit.name, twice->brief());
  for (const Key& item : unit.items) {
    FURLONG_TRY(const auto there, place(item));
    if (!there)
      return fail(Code::invalid, "unit '{}': there is no item {}: add it before the unit that owns it",
                  unit.name, item.brief());
    if (there->owner == Place::kNobody) continue;
    FURLONG_TRY(const std::string other, name_of(there->owner));
    return fail(Code::invalid, "unit '{}': the item {} is owned by unit '{}' already", unit.name,
                item.brief(), other);
  }
  for (const Key& reference : unit.references)
    if (std::binary_search(sorted.begin(), sorted.end(), reference))
      return fail(Code::invalid, "unit '{}' refers to its own item {}: references are to items of others",
                  unit.name, reference.brief());
  return {};
}

namespace {

// What writers of this store left behind that were killed.
void sweep_temporaries(const fs::path& folder, const std::string& name) {
  const std::string prefix = fmt::format(".{}.", name), suffix = ".tmp";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    if (other.size() <= prefix.size() + suffix.size() || !other.starts_with(prefix) ||
        !other.ends_with(suffix))
      continue;
    const auto pid = parse_integer(
        std::string_view(other).substr(prefix.size(), other.size() - prefix.size() - suffix.size()));
    if (!pid || *pid <= 0 || *pid > std::numeric_limits<int>::max()) continue;
    std::error_code ignored;
    if (::kill(static_cast<int>(*pid), 0) != 0 && errno == ESRCH) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

StoreWriter::StoreWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreWriter::~StoreWriter() = default;
StoreWriter::StoreWriter(StoreWriter&&) noexcept = default;
StoreWriter& StoreWriter::operator=(StoreWriter&&) noexcept = default;

Result<StoreWriter> StoreWriter::create(const fs::path& file, const std::string& executor,
                                        int executor_version, const std::string& settings) {
  std::error_code error;
  if (fs::is_directory(file, error)) return fail(Code::invalid, "{}: is a folder, not a file", file.string());
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  fs::create_directories(folder, error);
  if (error) return fail(Code::denied, "{}: making the folder: {}", folder.string(), error.message());
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  impl->executor = executor;
  impl->executor_version = executor_version;
  impl->settings = settings;
  sweep_temporaries(folder, file.filename().string());
  impl->temporary = folder / fmt::format(".{}.{}.tmp", file.filename().string(), ::getpid());
  fs::remove(impl->temporary, error);  // of a process of this number that was killed
  FURLONG_TRY(impl->tables, lmdb::Writer::create(impl->temporary, kTables));
  impl->digest = store_digest_head(executor, executor_version, settings);
  return StoreWriter(std::move(impl));
}

Result<Key> StoreWriter::add_item(ByteView bytes, bool shared) {
  const Key key = blake2b_256(bytes);
  FURLONG_TRY(const bool there, impl_->has(kIndex, key));
  if (there) return key;
  std::uint32_t& number = impl_->items[shared ? 1 : 0];
  constexpr std::uint32_t kMost = 0x7FFFFFFF;
  if (number == kMost)
    return fail(Code::exhausted, "{}: a store holds {} items at most", impl_->file.string(), kMost);
  FURLONG_CHECK(impl_->tables->append(shared ? kShared : kItems, index_bytes(number), bytes));
  FURLONG_CHECK(impl_->tables->put(kIndex, key.bytes, encode_place({number, shared, Place::kNobody})));
  ++number;
  return key;
}

Result<UnitIndex> StoreWriter::add_unit(const std::string& name, std::vector<Key> items,
                                        std::vector<Key> references) {
  std::sort(references.begin(), references.end());
  references.erase(std::unique(references.begin(), references.end()), references.end());
  const Key key = unit_key(items, references);
  const Unit unit{key, name, std::move(items), std::move(references)};
  FURLONG_CHECK(impl_->check(unit));
  const UnitIndex index = impl_->units;
  std::array<std::uint8_t, 4> number;
  store_le(number.data(), index);
  FURLONG_CHECK(impl_->tables->append(kUnits, index_bytes(index), encode_unit(unit)));
  FURLONG_CHECK(impl_->tables->put(kNames, name_key(name).bytes, number));
  for (const Key& item : unit.items) {
    FURLONG_TRY(auto place, impl_->place(item));  // check() has seen it
    place->owner = index;
    FURLONG_CHECK(impl_->tables->put(kIndex, item.bytes, encode_place(*place)));
  }
  for (const Key& reference : unit.references) {
    FURLONG_TRY(const bool owned, impl_->owned(reference));
    if (!owned) impl_->open_references.try_emplace(reference, index);
  }
  impl_->digest.add(unit.key.bytes);
  return impl_->units++;
}

Status StoreWriter::finish() {
  if (impl_->tables == nullptr)
    return fail(Code::internal, "{}: the store is finished already", impl_->file.string());
  // The same one is named every time, whatever the order of the table in memory.
  std::optional<std::pair<UnitIndex, Key>> first;
  for (const auto& [reference, unit] : impl_->open_references) {
    FURLONG_TRY(const bool owned, impl_->owned(reference));
    if (!owned && (!first || std::pair(unit, reference) < *first)) first = {unit, reference};
  }
  if (first) {
    FURLONG_TRY(const std::string name, impl_->name_of(first->first));
    return fail(Code::invalid, "unit '{}' refers to the item {}, which no unit owns", name,
                first->second.brief());
  }
  FURLONG_CHECK(impl_->put_meta(kFormatKey, kStoreFormat));
  FURLONG_CHECK(impl_->put_meta(kVersionKey, std::to_string(kStoreVersion)));
  FURLONG_CHECK(impl_->put_meta(kExecutorKey, impl_->executor));
  FURLONG_CHECK(impl_->put_meta(kExecutorVersionKey, std::to_string(impl_->executor_version)));
  FURLONG_CHECK(impl_->put_meta(kSettingsKey, impl_->settings));
  FURLONG_CHECK(impl_->put_meta(kUnitsKey, std::to_string(impl_->units)));
  const Digest digest = std::exchange(impl_->digest, Hasher()).finish();
  FURLONG_CHECK(impl_->put_meta(kDigestKey, digest.hex()));
  FURLONG_CHECK(impl_->tables->finish());
  impl_->tables.reset();
  std::error_code error;
  fs::rename(impl_->temporary, impl_->file, error);
  if (error) return fail(Code::internal, "{}: renaming: {}", impl_->file.string(), error.message());
  impl_->temporary.clear();
  // The name survives a crash only when the folder is on the disk as well.
  const fs::path folder = impl_->file.has_parent_path() ? impl_->file.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    static_cast<void>(::fsync(descriptor));
    ::close(descriptor);
  }
  return {};
}

}  // namespace furlong::shard
