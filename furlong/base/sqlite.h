#pragma once
// A thin SQLite wrapper: the only file that includes sqlite3.h is its .cpp.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"

namespace furlong {

class Database;

/// A prepared statement. Bind positions count from 1, columns from 0. Not thread safe.
class Statement {
 public:
  ~Statement();
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  void bind(int position, std::int64_t value);
  void bind(int position, double value);
  void bind(int position, std::string_view value);
  void bind(int position, ByteView value);
  void bind_null(int position);
  /// true: a row is there; false: done.
  Result<bool> step();
  void reset();
  std::int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  /// Without a copy: valid until the next step, reset, or other read of the column.
  std::string_view text_view(int column) const;
  ByteView blob(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct State;
  explicit Statement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct DatabaseOptions {
  bool create = true;  ///< a file that is not there; else `unavailable`
  bool read_only =
      false;           ///< the file is not changed (SQLite keeps its -wal and -shm beside it all the same)
  int page_bytes = 0;  ///< of a new file: a power of 2 up to 65536; 0: SQLite's own
  int cache_kib = 0;   ///< most memory that pages are kept in; 0: SQLite's own, 2 MiB
  int busy_timeout_ms = 10'000;
};

/// One connection. Errors map: busy → timeout, full → exhausted, damaged → corrupt, read-only or
/// no permission → denied; each message names the file. Not thread safe; several processes may open
/// one file (busy timeout 10 s).
class Database {
 public:
  static Result<Database> open(const std::filesystem::path& file, const DatabaseOptions& options = {});
  static Result<Database> in_memory();
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  Status execute(std::string_view sql);
  Result<Statement> prepare(std::string_view sql);
  /// Runs numbered migrations: `steps[i]` brings schema version i to i+1, all in one transaction.
  /// A file of a newer version is `incompatible` (found and expected named), of a negative one `corrupt`.
  Status migrate(const std::vector<std::string>& steps);
  /// What migrate has brought it to.
  Result<std::int64_t> schema_version();
  /// One consistent copy in a new file, while others write; `invalid` when the file is there and not empty.
  /// Not synced.
  Status copy_to(const std::filesystem::path& file);
  /// Whether the file that is open is no longer the one that its name leads to: it was moved, removed or
  /// replaced. SQLite goes on with it all the same, and what it then commits nobody finds by that name.
  bool moved() const;
  /// "3.40.1"
  static std::string version();

 private:
  struct State;
  explicit Database(std::unique_ptr<State> state);
  Status use_write_ahead_log(int busy_timeout_ms);
  std::unique_ptr<State> state_;
};

}  // namespace furlong
