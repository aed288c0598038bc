#include "furlong/fleet/store/postgres/internal/connection.h"

#include <algorithm>
#include <bit>

#include "furlong/base/text.h"
#include "furlong/fleet/store/postgres/internal/wire.h"

namespace furlong::fleet::postgres {
namespace {

constexpr std::size_t pipelined = 256;        // statements that are sent before their results are read
constexpr std::size_t most_in_vain = 10'000;  // rows that are read and dropped rather than to connect anew

constexpr const char* session =
    "SET search_path=furlong; SET client_min_messages=warning; SET lock_timeout='10s'; "
    "SET synchronous_commit=on; SET idle_in_transaction_session_timeout='2min'";

void ignore_notice(void*, const char*) {}

/// What a statement is about, for messages.
std::string_view brief(std::string_view statement) { return statement.substr(0, 60); }

}  // namespace

PostgresConnection::PostgresConnection(const Libpq& libpq, std::string url, const StoreKind::Options& options)
    : libpq_(&libpq), url_(std::move(url)), name_(one_line(shown_url(url_))), options_(options) {}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(std::string_view url,
                                                                     const StoreKind::Options& options) {
  FURLONG_TRY(const Libpq* libpq, open_libpq());
  std::unique_ptr<PostgresConnection> one(new PostgresConnection(*libpq, std::string(url), options));
  FURLONG_CHECK(one->read_password());
  FURLONG_CHECK(one->connect());
  return one;
}

Status PostgresConnection::read_password() {
  // libpq ends the part with user and password at the first of these, also within a password.
  hides_words_ = url_password(url_).find_first_of("/?") != std::string_view::npos;
  char* words = nullptr;
  PQconninfoOption* const options = libpq_->conninfo_parse(url_.c_str(), &words);
  if (options == nullptr) {
    // Its words quote a part of the URL, which may be the password's.
    const std::string why = words == nullptr || name_ != url_ ? "" : ": " + one_line(trim(words));
    if (words != nullptr) libpq_->free_memory(words);
    return fail(Code::invalid, "{}: no URL that libpq takes (postgresql://USER@HOST/DATABASE){}", name_, why);
  }
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option)
    if (std::string_view(option->keyword).ends_with("password") && option->val != nullptr &&
        *option->val != 0)
      passwords_.emplace_back(option->val);
  libpq_->conninfo_free(options);
  return {};
}

std::string PostgresConnection::without_password(std::string text) const {
  if (hides_words_)
    return "a '/' or '?' stands where a password does (write %2F, %3F); what the server said may quote it";
  for (const std::string& password : passwords_) text = replace_all(text, password, "***");
  return one_line(trim(text));
}

void PostgresConnection::close() {
  if (connection_ != nullptr) libpq_->finish(connection_);
  connection_ = nullptr;
  prepared_.clear();
}

Error PostgresConnection::connection_error(std::string_view doing) {
  const std::string words = connection_ == nullptr ? "not connected" : libpq_->error_message(connection_);
  const Code code = connection_ == nullptr ? Code::exhausted : code_of_words(words);
  close();
  return fail(code, "{}: {}: {}", name_, doing, without_password(words));
}

Error PostgresConnection::result_error(const PGresult* result, std::string_view doing) {
  const char* const state = result == nullptr ? nullptr : libpq_->error_field(result, PG_DIAG_SQLSTATE);
  if (state == nullptr || lost()) return connection_error(doing);
  const char* const words = libpq_->error_field(result, PG_DIAG_MESSAGE_PRIMARY);
  const Code code = code_of_state(state);
  Error error = fail(code, "{}: {}: {} (SQLSTATE {})", name_, doing,
                     without_password(words == nullptr ? "" : words), state);
  if (code == Code::unavailable) close();
  return error;
}

Status PostgresConnection::connect() {
  close();
  // What stands before the URL it may override.
  constexpr const char* keywords[] = {"connect_timeout",
                                      "tcp_user_timeout",
                                      "keepalives_idle",
                                      "dbname",
                                      "fallback_application_name",
                                      "client_encoding",
                                      nullptr};
  const char* const values[] = {"10", "20000", "30", url_.c_str(), "furlong", "UTF8", nullptr};
  connection_ = libpq_->connect(keywords, values, 1);
  ++generation_;
  if (lost()) return connection_error("connecting");
  libpq_->set_notice_processor(connection_, &ignore_notice, nullptr);
  const auto prepared = [&]() -> Status {
    FURLONG_CHECK(execute(session));
    FURLONG_CHECK(check_encoding());
    const char* const version = libpq_->parameter_status(connection_, "server_version");
    const std::string_view number = version == nullptr ? "" : version;
    version_ = fmt::format("PostgreSQL {}", number.substr(0, number.find(' ')));
    return prepare_schema();
  }();
  if (!prepared) close();
  return prepared;
}

Status PostgresConnection::check_encoding() {
  const char* const found = libpq_->parameter_status(connection_, "server_encoding");
  const std::string_view encoding = found == nullptr ? "none" : found;
  if (encoding == "UTF8") return {};
  return fail(Code::incompatible, "{}: found a database with the encoding {}, expected UTF8", name_,
              encoding);
}

Status PostgresConnection::execute(const std::string& statements) {
  const ResultPointer result(libpq_->exec(connection_, statements.c_str()), Clear{libpq_});
  const ExecStatusType status = result == nullptr ? PGRES_FATAL_ERROR : libpq_->result_status(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    return result_error(result.get(), brief(statements));
  // COMMIT of a transaction that has failed ends it, and says so only here.
  if (statements == "COMMIT" && std::string_view(libpq_->command_status(result.get())) != "COMMIT")
    return fail(Code::internal, "{}: COMMIT: the transaction was given up", name_);
  return {};
}

Result<std::string> PostgresConnection::text_of(const std::string& query) {
  const ResultPointer result(libpq_->exec(connection_, query.c_str()), Clear{libpq_});
  if (result == nullptr || libpq_->result_status(result.get()) != PGRES_TUPLES_OK)
    return result_error(result.get(), brief(query));
  if (libpq_->rows(result.get()) == 0) return std::string();
  return std::string(libpq_->value(result.get(), 0, 0),
                     static_cast<std::size_t>(libpq_->length(result.get(), 0, 0)));
}

Status PostgresConnection::begin(bool writes) {
  // The lock makes writers take turns; it goes with the transaction.
  const std::string begin =
      writes ? "BEGIN; SELECT 1 FROM totals FOR UPDATE" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  if (!lost()) {
    Status begun = execute(begin);
    if (begun) return {};
    if (!lost()) {
      rollback();
      return begun;
    }
  }
  // It was lost since the last call, or before: nothing is done yet, so that it may be tried on a new one.
  FURLONG_CHECK(connect());
  Status begun = execute(begin);
  if (!begun) rollback();
  return begun;
}

Status PostgresConnection::commit() {
  if (lost()) return fail(Code::unavailable, "{}: COMMIT: the connection was lost", name_);
  return execute("COMMIT");
}

void PostgresConnection::rollback() {
  if (lost()) return;
  if (const Status undone = execute("ROLLBACK"); !undone) close();
}

Result<std::string> PostgresConnection::prepare(std::string_view statement,
                                                std::span<const sql::Value> values) {
  if (const auto at = prepared_.find(statement); at != prepared_.end()) return at->second;
  std::string name = fmt::format("s{}", prepared_.size());
  std::vector<Oid> types;
  for (const sql::Value& value : values) types.push_back(type_of(value));
  const ResultPointer result(
      libpq_->prepare(connection_, name.c_str(), replace_all(statement, "?", "$").c_str(),
                      static_cast<int>(types.size()), types.data()),
      Clear{libpq_});
  if (result == nullptr || libpq_->result_status(result.get()) != PGRES_COMMAND_OK)
    return result_error(result.get(), brief(statement));
  prepared_.emplace(statement, name);
  return name;
}

Status PostgresConnection::send(const std::string& prepared, std::span<const sql::Value> values) {
  const Parameters parameters(values);
  if (libpq_->send_prepared(connection_, prepared.c_str(), static_cast<int>(values.size()),
                            parameters.values(), parameters.lengths(), parameters.formats(), 1) == 1)
    return {};
  return connection_error("sending");
}

Status PostgresConnection::run(std::string_view statement, std::span<const sql::Value> values,
                               std::size_t columns, const Visit& visit, Rows rows) {
  if (values.empty() && columns > 0) return {};
  if (lost()) return fail(Code::unavailable, "{}: {}: the connection was lost", name_, brief(statement));
  FURLONG_TRY(const std::string prepared, prepare(statement, values.first(columns)));
  if (values.size() == columns) return run_one(prepared, values, visit, rows, brief(statement));
  return run_pipelined(prepared, values, columns, visit, rows, brief(statement));
}

Status PostgresConnection::run_one(const std::string& prepared, std::span<const sql::Value> values,
                                   const Visit& visit, Rows rows, std::string_view doing) {
  FURLONG_CHECK(send(prepared, values));
  Reading reading{.visit = &visit};
  read_results(0, rows, reading, doing);
  return reading.status;
}

Status PostgresConnection::run_pipelined(const std::string& prepared, std::span<const sql::Value> values,
                                         std::size_t columns, const Visit& visit, Rows rows,
                                         std::string_view doing) {
  if (libpq_->enter_pipeline(connection_) != 1) return connection_error(doing);
  const std::size_t times = values.size() / columns;
  Reading reading{.visit = &visit};
  for (std::size_t first = 0; first < times && reading.status && reading.wanted && !lost();) {
    const std::size_t count = std::min(pipelined, times - first);
    for (std::size_t i = first; i < first + count; ++i)
      FURLONG_CHECK(send(prepared, values.subspan(i * columns, columns)));
    if (libpq_->pipeline_sync(connection_) != 1) return connection_error(doing);
    for (std::size_t i = first; i < first + count && !lost(); ++i) read_results(i, rows, reading, doing);
    if (!lost()) FURLONG_CHECK(read_sync(reading, doing));
    first += count;
  }
  if (!lost() && libpq_->exit_pipeline(connection_) != 1) return connection_error(doing);
  return reading.status;
}

Status PostgresConnection::read_sync(Reading& reading, std::string_view doing) {
  const ResultPointer sync = next_result();
  if (sync != nullptr && libpq_->result_status(sync.get()) == PGRES_PIPELINE_SYNC) return {};
  if (!reading.status) return reading.status;
  return result_error(sync.get(), doing);
}

void PostgresConnection::read_results(std::size_t index, Rows rows, Reading& reading,
                                      std::string_view doing) {
  if (rows == Rows::many) libpq_->set_single_row_mode(connection_);
  for (ResultPointer result = next_result(); result != nullptr; result = next_result()) {
    const ExecStatusType status = libpq_->result_status(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_SINGLE_TUPLE) {
      hand_on(index, result.get(), reading);
      // The server would send all the others as well, and a request to stop could hit what comes after.
      if (reading.left > most_in_vain) return close();
    } else if (status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_ABORTED && reading.status) {
      reading.status = result_error(result.get(), doing);
      if (connection_ == nullptr) return;
    }
  }
  if (lost() && reading.status) reading.status = connection_error(doing);
}

void PostgresConnection::hand_on(std::size_t index, const PGresult* result, Reading& reading) {
  const int count = libpq_->rows(result);
  for (int row = 0; row < count; ++row) {
    if (!reading.wanted) {
      ++reading.left;
      continue;
    }
    if (!*reading.visit) continue;
    auto more = (*reading.visit)(index, PostgresRow(*libpq_, result, row));
    if (!more) reading.status = Error(std::move(more).error());
    reading.wanted = more.value_or(false);
  }
}

Result<std::uint64_t> PostgresConnection::bytes() {
  std::uint64_t bytes = 0;
  FURLONG_CHECK(
      once("SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c JOIN "
           "pg_namespace "
           "n ON n.oid=c.relnamespace WHERE n.nspname='furlong' AND c.relkind='r'",
           {}, [&](std::size_t, const sql::Row& row) -> Result<bool> {
             bytes = static_cast<std::uint64_t>(row.integer(0));
             return true;
           }));
  return bytes;
}

}  // namespace furlong::fleet::postgres
