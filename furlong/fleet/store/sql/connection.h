#pragma once
// What the stores of SQL databases share is written against this seam; a driver is one class.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"

namespace furlong::fleet::sql {

/// Of a parameter. Texts and bytes are views: they are read before the call that takes them returns. There
/// are no NULLs in the fleet's tables.
using Value = std::variant<std::int64_t, double, std::string_view, ByteView>;

/// A row of a result; columns count from 0. Views are valid until the visitor returns.
class Row {
 public:
  virtual ~Row() = default;
  virtual std::int64_t integer(int column) const = 0;
  virtual std::string_view text(int column) const = 0;
  virtual ByteView blob(int column) const = 0;
};

/// Where the databases' languages differ.
struct Dialect {
  std::string_view big;        ///< type of a 64-bit integer ("INTEGER": at least 32)
  std::string_view text;       ///< type of a text that is compared byte by byte
  std::string_view blob;       ///< type of bytes
  std::string_view plain;      ///< after the columns of a table
  std::string_view clustered;  ///< after those of one that lies in the order of its primary key
  std::string_view id_index;   ///< by id, with subject, machine, ts_us, label, driver and winner in it
};

/// One connection, for one thread. Errors as those of Store.
class Connection {
 public:
  /// For each row of the run `index`; false: no more rows are wanted, of this run and those after it.
  using Visit = std::function<Result<bool>(std::size_t index, const Row& row)>;
  enum class Rows {
    few,  ///< of each run: they may be held in memory
    many
  };

  virtual ~Connection() = default;
  /// Of the store, for messages; without a password.
  virtual const std::string& name() const = 0;
  virtual bool read_only() const = 0;

  /// Writers take turns: of one store there is one at a time. Readers see what was there when they began.
  /// Opens a lost connection again.
  virtual Status begin(bool writes) = 0;
  /// After an error nothing is kept, unless the connection was lost on the way: then nobody knows.
  virtual Status commit() = 0;
  virtual void rollback() = 0;

  /// Runs one statement for each `columns` of `values`, in order; parameters are ?1, ?2 … Statements are
  /// prepared once. All values of one column are of one kind.
  virtual Status run(std::string_view statement, std::span<const Value> values, std::size_t columns,
                     const Visit& visit = {}, Rows rows = Rows::few) = 0;
  /// Once, with or without parameters.
  Status once(std::string_view statement, std::initializer_list<Value> values = {}, const Visit& visit = {},
              Rows rows = Rows::few) {
    return run(statement, {values.begin(), values.size()}, values.size(), visit, rows);
  }

  /// Differs when the connection was opened anew: what was learned over the one before may be wrong.
  virtual std::uint64_t generation() const = 0;
  /// That the store takes on its disk.
  virtual Result<std::uint64_t> bytes() = 0;
  /// "SQLite 3.40.1"
  virtual std::string version() const = 0;
  /// Store::snapshot.
  virtual Result<bool> snapshot(const std::filesystem::path& file) = 0;
};

}  // namespace furlong::fleet::sql
