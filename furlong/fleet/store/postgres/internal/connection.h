#pragma once
// One connection to a server of PostgreSQL, as the stores of SQL use it.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "furlong/fleet/store/postgres/internal/libpq.h"
#include "furlong/fleet/store/sql/connection.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet::postgres {

class PostgresConnection : public sql::Connection {
 public:
  /// Connects, and brings the schema up to date or checks it. Errors as those of Store.
  static Result<std::unique_ptr<PostgresConnection>> open(std::string_view url,
                                                          const StoreKind::Options& options);
  ~PostgresConnection() override { close(); }

  const std::string& name() const override { return name_; }
  bool read_only() const override { return options_.read_only; }
  std::uint64_t generation() const override { return generation_; }
  std::string version() const override { return version_; }
  Status begin(bool writes) override;
  Status commit() override;
  void rollback() override;
  Status run(std::string_view statement, std::span<const sql::Value> values, std::size_t columns,
             const Visit& visit, Rows rows) override;
  Result<std::uint64_t> bytes() override;
  Result<bool> snapshot(const std::filesystem::path&) override { return false; }

 private:
  PostgresConnection(const Libpq& libpq, std::string url, const StoreKind::Options& options);

  struct Clear {
    const Libpq* libpq;
    void operator()(PGresult* result) const { libpq->clear(result); }
  };
  using ResultPointer = std::unique_ptr<PGresult, Clear>;
  /// How the rows of a run are handed on.
  struct Reading {
    const Visit* visit = nullptr;
    Status status;         ///< the first error
    bool wanted = true;    ///< more rows are
    std::size_t left = 0;  ///< rows that were read in vain since
  };

  Status read_password();
  Status connect();
  void close();
  bool lost() const { return connection_ == nullptr || libpq_->status(connection_) != CONNECTION_OK; }
  Error connection_error(std::string_view doing);
  Error result_error(const PGresult* result, std::string_view doing);
  std::string without_password(std::string text) const;

  ResultPointer next_result() { return {libpq_->get_result(connection_), Clear{libpq_}}; }
  Status execute(const std::string& statements);
  Result<std::string> text_of(const std::string& query);  ///< first column of its first row; empty: none
  Result<std::string> prepare(std::string_view statement, std::span<const sql::Value> values);
  Status send(const std::string& prepared, std::span<const sql::Value> values);
  Status run_one(const std::string& prepared, std::span<const sql::Value> values, const Visit& visit,
                 Rows rows, std::string_view doing);
  Status run_pipelined(const std::string& prepared, std::span<const sql::Value> values, std::size_t columns,
                       const Visit& visit, Rows rows, std::string_view doing);
  void read_results(std::size_t index, Rows rows, Reading& reading, std::string_view doing);
  void hand_on(std::size_t index, const PGresult* result, Reading& reading);
  Status read_sync(Reading& reading, std::string_view doing);

  Status check_encoding();
  Result<std::int64_t> schema_version();  ///< 0: there is no schema
  Status prepare_schema();
  Status migrate(std::int64_t version);

  const Libpq* libpq_;
  std::string url_, name_, version_;
  std::vector<std::string> passwords_;  ///< that may not be in a message
  bool hides_words_ = false;            ///< libpq takes parts of the password for something else
  StoreKind::Options options_;
  PGconn* connection_ = nullptr;
  std::uint64_t generation_ = 0;
  std::map<std::string, std::string, std::less<>> prepared_;  ///< names of statements
};

}  // namespace furlong::fleet::postgres
