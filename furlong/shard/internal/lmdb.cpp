#include "furlong/shard/internal/lmdb.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <string>
#include <system_error>

namespace furlong::shard::lmdb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstMapBytes = 1u << 26;
// What one transaction holds: enough that its fixed cost does not show, little enough to be done again when
// the map was too small for it.
constexpr std::size_t kBatchBytes = 1u << 24;
constexpr std::size_t kBatchPuts = 1u << 14;

Code code_of(int result) {
  switch (result) {
    case ENOENT:
      return Code::unavailable;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::denied;
    case EIO:  // LMDB's word for a write that came out short: the disk is full
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case MDB_MAP_FULL:
      return Code::exhausted;
    case MDB_INVALID:
    case MDB_NOTFOUND:
    case MDB_INCOMPATIBLE:
    case MDB_DBS_FULL:
      return Code::invalid;
    case MDB_VERSION_MISMATCH:
      return Code::incompatible;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
      return Code::corrupt;
    default:
      return Code::internal;
  }
}

Error error_of(const fs::path& file, std::string_view doing, int result) {
  const std::string why = result == EIO ? "a write came out short or failed: is the disk full?"
                          : result > 0  ? std::generic_category().message(result)
                                        : mdb_strerror(result);
  return fail(code_of(result), "{}: {}: {}", file.string(), doing, why);
}

MDB_val value_of(ByteView bytes) {
  return {bytes.size(), const_cast<std::uint8_t*>(bytes.data())};  // LMDB only reads it
}
ByteView view_of(const MDB_val& value) {
  return {static_cast<const std::uint8_t*>(value.mv_data), value.mv_size};
}

struct Environment {
  MDB_env* handle = nullptr;
  ~Environment() {
    if (handle != nullptr) mdb_env_close(handle);
  }
};

Status make(Environment& environment, const fs::path& file, std::size_t tables) {
  if (const int result = mdb_env_create(&environment.handle); result != 0)
    return error_of(file, "opening", result);
  if (const int result = mdb_env_set_maxdbs(environment.handle, static_cast<MDB_dbi>(tables)); result != 0)
    return error_of(file, "opening", result);
  return {};
}

}  // namespace

struct Writer::Impl {
  struct Put {
    std::size_t table;
    Bytes key, value;
    unsigned flags;
  };

  Impl(fs::path name) : file(std::move(name)) {}
  ~Impl() {
    if (transaction != nullptr) mdb_txn_abort(transaction);
  }

  Status begin() {
    if (const int result = mdb_txn_begin(environment.handle, nullptr, 0, &transaction); result != 0) {
      transaction = nullptr;
      return error_of(file, "writing", result);
    }
    return {};
  }

  int apply(const Put& put) {
    MDB_val key = value_of(put.key);
    MDB_val value = value_of(put.value);
    return mdb_put(transaction, tables[put.table], &key, &value, put.flags);
  }

  // A transaction that ran out of map is lost: all of it is done again in a map twice as large.
  Status grow() {
    for (;;) {
      if (transaction != nullptr) mdb_txn_abort(transaction);
      transaction = nullptr;
      map_bytes *= 2;
      if (const int result = mdb_env_set_mapsize(environment.handle, map_bytes); result != 0)
        return error_of(file, "growing the map", result);
      FURLONG_CHECK(begin());
      int result = 0;
      for (const Put& put : batch)
        if (result = apply(put); result != 0) break;
      if (result == 0) return {};
      if (result != MDB_MAP_FULL) return error_of(file, "writing", result);
    }
  }

  Status commit() {
    for (;;) {
      const int result = mdb_txn_commit(transaction);
      transaction = nullptr;
      if (result == 0) break;
      if (result != MDB_MAP_FULL) return error_of(file, "writing", result);
      FURLONG_CHECK(grow());
    }
    batch.clear();
    batch_bytes = 0;
    return {};
  }

  fs::path file;
  Environment environment;
  MDB_txn* transaction = nullptr;
  std::vector<MDB_dbi> tables;
  std::vector<Put> batch;  // of the running transaction
  std::size_t batch_bytes = 0;
  std::size_t map_bytes = kFirstMapBytes;
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::~Writer() = default;

Result<std::unique_ptr<Writer>> Writer::create(const fs::path& file, std::span<const char* const> tables) {
  auto impl = std::make_unique<Impl>(file);
  FURLONG_CHECK(make(impl->environment, file, tables.size()));
  MDB_env* const handle = impl->environment.handle;
  if (const int result = mdb_env_set_mapsize(handle, impl->map_bytes); result != 0)
    return error_of(file, "sizing the map", result);
  // Nobody else knows the file yet, and a crash leaves only a temporary one: neither lock nor sync before
  // the end.
  if (const int result = mdb_env_open(handle, file.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0666);
      result != 0)
    return error_of(file, "making the file", result);
  FURLONG_CHECK(impl->begin());
  for (const char* name : tables) {
    MDB_dbi table = 0;
    if (const int result = mdb_dbi_open(impl->transaction, name, MDB_CREATE, &table); result != 0)
      return error_of(file, "making the tables", result);
    impl->tables.push_back(table);
  }
  FURLONG_CHECK(impl->commit());
  FURLONG_CHECK(impl->begin());
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

Result<std::optional<ByteView>> Writer::get(std::size_t table, ByteView key) {
  if (impl_->transaction == nullptr)
    return fail(Code::internal, "{}: reading back after a failure", impl_->file.string());
  MDB_val wanted = value_of(key);
  MDB_val found{};
  const int result = mdb_get(impl_->transaction, impl_->tables[table], &wanted, &found);
  if (result == MDB_NOTFOUND) return std::optional<ByteView>();
  if (result != 0) return error_of(impl_->file, "reading back", result);
  return std::optional<ByteView>(view_of(found));
}

Status Writer::put(std::size_t table, ByteView key, ByteView value) { return write(table, key, value, 0); }

Status Writer::append(std::size_t table, ByteView key, ByteView value) {
  return write(table, key, value, MDB_APPEND);
}

Status Writer::write(std::size_t table, ByteView key, ByteView value, unsigned flags) {
  if (impl_->transaction == nullptr)
    return fail(Code::internal, "{}: writing after a failure", impl_->file.string());
  if (value.size() > kMaxValueBytes)
    return fail(Code::invalid, "{}: an entry of {} bytes: below 4 GiB is allowed", impl_->file.string(),
                value.size());
  impl_->batch.push_back({table, Bytes(key.begin(), key.end()), Bytes(value.begin(), value.end()), flags});
  impl_->batch_bytes += key.size() + value.size();
  const int result = impl_->apply(impl_->batch.back());
  if (result == MDB_MAP_FULL) {
    FURLONG_CHECK(impl_->grow());
  } else if (result != 0) {
    return error_of(impl_->file, "writing", result);
  }
  if (impl_->batch_bytes < kBatchBytes && impl_->batch.size() < kBatchPuts) return {};
  FURLONG_CHECK(impl_->commit());
  return impl_->begin();
}

Status Writer::finish() {
  if (impl_->transaction == nullptr)
    return fail(Code::internal, "{}: writing after a failure", impl_->file.string());
  FURLONG_CHECK(impl_->commit());
  if (const int result = mdb_env_sync(impl_->environment.handle, 1); result != 0)
    return error_of(impl_->file, "writing to the disk", result);
  mdb_env_close(impl_->environment.handle);
  impl_->environment.handle = nullptr;
  return {};
}

namespace {

// The head of an LMDB file of data version 1, on a 64-bit machine: two pages, each a 16-byte page head and
// then magic, version, address, map size, two 48-byte tables (the first begins with the page size), last
// page, transaction. Read here before LMDB maps the file: LMDB trusts what stands there, and a file that is
// shorter than it says would be a signal at some later access.
constexpr std::uint32_t kMagic = 0xBEEFC0DE;
constexpr std::uint32_t kDataVersion = 1;
constexpr std::size_t kMetaAt = 16;
constexpr std::size_t kHeadBytes = kMetaAt + 4 + 4 + 8 + 8 + 2 * 48 + 8 + 8;

struct Head {
  std::uint32_t magic, version, page_bytes;
  std::uint64_t last_page;
};

Result<Head> read_head(int descriptor, const fs::path& file, std::uint64_t size, std::uint64_t at) {
  std::array<std::uint8_t, kHeadBytes> bytes;
  const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at));
  if (got < 0) return error_of(file, "reading", errno);
  if (got != static_cast<ssize_t>(bytes.size()))
    return fail(Code::corrupt, "{}: the file ends at byte {}, in its head", file.string(), size);
  const std::uint8_t* meta = bytes.data() + kMetaAt;
  return Head{load_le<std::uint32_t>(meta), load_le<std::uint32_t>(meta + 4),
              load_le<std::uint32_t>(meta + 24), load_le<std::uint64_t>(meta + 24 + 96)};
}

Status check_head(int descriptor, const fs::path& file, std::uint64_t size) {
  if (size < kHeadBytes)
    return fail(Code::invalid, "{}: not a store: {} bytes are too few for one", file.string(), size);
  FURLONG_TRY(const Head head, read_head(descriptor, file, size, 0));
  if (head.magic != kMagic)
    return fail(Code::invalid, "{}: not a store: found the magic {:08x}, expected {:08x}", file.string(),
                head.magic, kMagic);
  if (head.version != kDataVersion)
    return fail(Code::incompatible, "{}: found LMDB's data version {}, expected {}: make the store anew",
                file.string(), head.version, kDataVersion);
  if (head.page_bytes < 512 || head.page_bytes > 65536 || (head.page_bytes & (head.page_bytes - 1)) != 0)
    return fail(Code::corrupt, "{}: byte {}: a page of {} bytes cannot be", file.string(), kMetaAt + 24,
                head.page_bytes);
  FURLONG_TRY(const Head second, read_head(descriptor, file, size, head.page_bytes));
  if (second.magic != kMagic || second.version != kDataVersion || second.page_bytes != head.page_bytes)
    return fail(Code::corrupt, "{}: byte {}: the second head is damaged", file.string(), head.page_bytes);
  const std::uint64_t last = std::max(head.last_page, second.last_page);
  if (last >= size / head.page_bytes)
    return fail(Code::corrupt, "{}: the file ends at byte {}, but says that it has {} pages of {} bytes",
                file.string(), size, last + 1, head.page_bytes);
  return {};
}

Result<std::uint64_t> check_file(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return error_of(file, "opening", errno);
  struct stat info{};
  Status status;
  if (::fstat(descriptor, &info) != 0)
    status = error_of(file, "opening", errno);
  else if (!S_ISREG(info.st_mode))
    status = fail(Code::invalid, "{}: not a regular file, so not a store", file.string());
  else
    status = check_head(descriptor, file, static_cast<std::uint64_t>(info.st_size));
  ::close(descriptor);
  if (!status) return status.error();
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace

struct Reader::Impl {
  fs::path file;
  Environment environment;
  std::vector<MDB_dbi> tables;
  // A transaction is for one thread at a time; the file never changes, so any will do, and what a finished
  // one handed out stays mapped.
  std::mutex mutex;
  std::vector<MDB_txn*> idle;

  ~Impl() {
    for (MDB_txn* transaction : idle) mdb_txn_abort(transaction);
  }

  Result<MDB_txn*> take() {
    const std::scoped_lock lock(mutex);
    if (!idle.empty()) {
      MDB_txn* const transaction = idle.back();
      idle.pop_back();
      return transaction;
    }
    MDB_txn* transaction = nullptr;
    if (const int result = mdb_txn_begin(environment.handle, nullptr, MDB_RDONLY, &transaction); result != 0)
      return error_of(file, "reading", result);
    return transaction;
  }
  void give(MDB_txn* transaction) {
    const std::scoped_lock lock(mutex);
    idle.push_back(transaction);
  }
};

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::~Reader() = default;

Result<std::unique_ptr<Reader>> Reader::open(const fs::path& file, std::span<const char* const> tables) {
  FURLONG_TRY(const std::uint64_t size, check_file(file));
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  FURLONG_CHECK(make(impl->environment, file, tables.size()));
  MDB_env* const handle = impl->environment.handle;
  // As large as the file: what the file says of its map is not asked.
  if (const int result = mdb_env_set_mapsize(handle, size); result != 0)
    return error_of(file, "sizing the map", result);
  // No lock, as the file is complete before it has its name and never changes; no read-ahead, since what
  // is not asked for shall not become resident.
  if (const int result = mdb_env_open(
          handle, file.c_str(), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD, 0444);
      result != 0)
    return error_of(file, "opening", result);
  MDB_txn* transaction = nullptr;
  if (const int result = mdb_txn_begin(handle, nullptr, MDB_RDONLY, &transaction); result != 0)
    return error_of(file, "opening", result);
  for (const char* name : tables) {
    MDB_dbi table = 0;
    if (const int result = mdb_dbi_open(transaction, name, 0, &table); result != 0) {
      mdb_txn_abort(transaction);
      if (result == MDB_NOTFOUND)
        return fail(Code::invalid, "{}: not a store: an LMDB file without the table '{}'", file.string(),
                    name);
      return error_of(file, "opening", result);
    }
    impl->tables.push_back(table);
  }
  // Committed, not aborted: the tables then belong to all transactions.
  if (const int result = mdb_txn_commit(transaction); result != 0) return error_of(file, "opening", result);
  return std::unique_ptr<Reader>(new Reader(std::move(impl)));
}

Result<std::optional<ByteView>> Reader::get(std::size_t table, ByteView key) const {
  FURLONG_TRY(MDB_txn* const transaction, impl_->take());
  MDB_val wanted = value_of(key);
  MDB_val found{};
  const int result = mdb_get(transaction, impl_->tables[table], &wanted, &found);
  impl_->give(transaction);
  if (result == MDB_NOTFOUND) return std::optional<ByteView>();
  if (result != 0) return error_of(impl_->file, "reading", result);
  return std::optional<ByteView>(view_of(found));
}

Result<std::uint64_t> Reader::count(std::size_t table) const {
  FURLONG_TRY(MDB_txn* const transaction, impl_->take());
  MDB_stat stat{};
  const int result = mdb_stat(transaction, impl_->tables[table], &stat);
  impl_->give(transaction);
  if (result != 0) return error_of(impl_->file, "reading", result);
  return static_cast<std::uint64_t>(stat.ms_entries);
}

}  // namespace furlong::shard::lmdb
