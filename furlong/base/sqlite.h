#pragma once
// A thin SQLite wrapper: the only file that includes sqlite3.h is its .cpp.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  void bind_null(int position);
  /// true: a row is there; false: done.
  Result<bool> step();
  void reset();
  std::int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct State;
  explicit Statement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One connection. Errors map: busy → timeout, full → exhausted, damaged → corrupt, read-only or
/// no permission → denied; each message names the file. Not thread safe; several processes may open
/// one file (busy timeout 10 s).
class Database {
 public:
  static Result<Database> open(const std::filesystem::path& file);
  static Result<Database> in_memory();
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  Status execute(std::string_view sql);
  Result<Statement> prepare(std::string_view sql);
  /// Runs numbered migrations: `steps[i]` brings schema version i to i+1, all in one transaction.
  /// A file of a newer version is `incompatible` (found and expected named), of a negative one `corrupt`.
  Status migrate(const std::vector<std::string>& steps);

 private:
  struct State;
  explicit Database(std::unique_ptr<State> state);
  Status use_write_ahead_log();
  std::unique_ptr<State> state_;
};

}  // namespace furlong
