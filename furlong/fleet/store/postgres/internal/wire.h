#pragma once
// Values as PostgreSQL's binary protocol has them, and what its errors mean.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/fleet/store/postgres/internal/libpq.h"
#include "furlong/fleet/store/sql/connection.h"

namespace furlong::fleet::postgres {

Oid type_of(const sql::Value& value);

/// The parameters of one statement. Texts that PostgreSQL cannot hold (a zero byte, bad UTF-8) have a
/// question mark for each of those bytes. Valid while the values are.
class Parameters {
 public:
  explicit Parameters(std::span<const sql::Value> values);
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void add(const char* data, std::size_t size);
  std::vector<std::uint64_t> numbers_;
  std::vector<std::string> mended_;
  std::vector<const char*> values_;
  std::vector<int> lengths_, formats_;
};

class PostgresRow : public sql::Row {
 public:
  PostgresRow(const Libpq& libpq, const PGresult* result, int row)
      : libpq_(&libpq), result_(result), row_(row) {}
  std::int64_t integer(int column) const override;
  std::string_view text(int column) const override;
  ByteView blob(int column) const override { return as_bytes(text(column)); }

 private:
  const Libpq* libpq_;
  const PGresult* result_;
  int row_;
};

/// Of a SQLSTATE.
Code code_of_state(std::string_view state);
/// Of a connection that failed, for which there is no SQLSTATE.
Code code_of_words(std::string_view words);

}  // namespace furlong::fleet::postgres
