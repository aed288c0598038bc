#pragma once
// The one wrapper of LMDB: a file of a few tables, written once by one process, then read by many.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"

namespace furlong::shard::lmdb {

/// Keys are at most 511 bytes (LMDB's own limit), values below 4 GiB.
inline constexpr std::size_t kMaxKeyBytes = 511;
inline constexpr std::uint64_t kMaxValueBytes = 0xFFFFFFFFull;

/// A file under construction. One thread at a time.
class Writer {
 public:
  /// `file` must not be there. Tables are numbered as in `tables`.
  static Result<std::unique_ptr<Writer>> create(const std::filesystem::path& file,
                                                std::span<const char* const> tables);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Valid until the next put().
  Result<std::optional<ByteView>> get(std::size_t table, ByteView key);
  /// Replaces. The map grows as needed; `exhausted` when the disk is full.
  Status put(std::size_t table, ByteView key, ByteView value);
  /// The same for a key behind all others of its table: pages fill up, in the order of the keys.
  Status append(std::size_t table, ByteView key, ByteView value);
  /// On the disk to the last byte. Nothing may be called after it.
  Status finish();

 private:
  Status write(std::size_t table, ByteView key, ByteView value, unsigned flags);
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A finished file, mapped. Thread safe.
class Reader {
 public:
  /// `unavailable`: not there, `invalid`: not such a file or not one with these tables, `incompatible`:
  /// LMDB's format has another version, `corrupt`: shorter than it says. Allocates nothing that a damaged
  /// file could make large.
  static Result<std::unique_ptr<Reader>> open(const std::filesystem::path& file,
                                              std::span<const char* const> tables);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// The mapped bytes; valid as long as this.
  Result<std::optional<ByteView>> get(std::size_t table, ByteView key) const;
  Result<std::uint64_t> count(std::size_t table) const;

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace furlong::shard::lmdb
