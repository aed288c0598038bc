#include "furlong/fleet/store/sqlite/sqlite.h"

#include <map>

#include "furlong/base/sqlite.h"
#include "furlong/base/text.h"
#include "furlong/fleet/store/sql/schema.h"
#include "furlong/fleet/store/sql/sql_store.h"

namespace furlong::fleet::sqlite {
namespace {

constexpr std::string_view scheme = "sqlite:";
// "FLst": in the file's header, so that another program's database is not taken for a store.
constexpr std::int64_t application_id = 0x464C7374;
// A row of a race with a hundred variants still lies within its page, and the indexes stay flat.
constexpr int page_bytes = 8192;
// Of pages in memory. A hub has a connection for each of its threads, and one of them writes.
constexpr int reader_cache_kib = 4 << 10, writer_cache_kib = 64 << 10;

constexpr sql::Dialect dialect{.big = "INTEGER",
                               .text = "TEXT",
                               .blob = "BLOB",
                               .plain = " STRICT",
                               .clustered = " WITHOUT ROWID, STRICT",
                               // The primary key is in every index; that ids are unique is add()'s own care.
                               .id_index = "INDEX race_id ON race(id, label, driver, winner)"};

class SqliteRow : public sql::Row {
 public:
  explicit SqliteRow(const Statement& statement) : statement_(&statement) {}
  std::int64_t integer(int column) const override { return statement_->integer(column); }
  std::string_view text(int column) const override { return statement_->text_view(column); }
  ByteView blob(int column) const override { return statement_->blob(column); }

 private:
  const Statement* statement_;
};

/// Opens the file as a store: its schema is there and of this version.
Result<Database> open_file(const std::filesystem::path& file, const StoreKind::Options& options);

class SqliteConnection : public sql::Connection {
 public:
  SqliteConnection(Database database, std::filesystem::path file, bool read_only)
      : database_(std::move(database)), file_(std::move(file)), read_only_(read_only) {
    name_ = std::string(scheme) + file_.string();
  }

  const std::string& name() const override { return name_; }
  bool read_only() const override { return read_only_; }
  std::uint64_t generation() const override { return generation_; }
  std::string version() const override { return "SQLite " + Database::version(); }

  Status begin(bool writes) override {
    if (database_.moved()) FURLONG_CHECK(open_again());
    if (writes && !has_written_) {
      FURLONG_CHECK(database_.execute(fmt::format("PRAGMA cache_size=-{}", writer_cache_kib)));
      has_written_ = true;
    }
    return database_.execute(writes ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  Status commit() override {
    if (database_.moved()) return fail(Code::unavailable, "{}: {}", name_, went_away);
    return database_.execute("COMMIT");
  }
  void rollback() override {
    const Status undone = database_.execute("ROLLBACK");
    static_cast<void>(undone);  // after some errors SQLite has done it already
  }

  Status run(std::string_view statement, std::span<const sql::Value> values, std::size_t columns,
             const Visit& visit, Rows) override {
    if (values.empty() && columns > 0) return {};
    FURLONG_TRY(Statement * prepared, prepare(statement));
    const std::size_t times = columns == 0 ? 1 : values.size() / columns;
    Status status;
    bool more = true;
    for (std::size_t i = 0; i < times && more && status; ++i) {
      bind(*prepared, values.subspan(i * columns, columns));
      auto done = run_once(*prepared, i, visit);
      prepared->reset();
      if (!done) status = Error(std::move(done).error());
      more = done.value_or(false);
    }
    return status;
  }

  Result<std::uint64_t> bytes() override {
    std::uint64_t bytes = 0;
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::error_code error;
      const auto size = std::filesystem::file_size(file_.native() + suffix, error);
      if (!error) bytes += size;
    }
    return bytes;
  }

  Result<bool> snapshot(const std::filesystem::path& file) override {
    FURLONG_CHECK(database_.copy_to(file));
    return true;
  }

 private:
  static constexpr std::string_view went_away = "the file was moved or removed while it was open";

  /// Another file may have its name now; none is made. The one that was open is kept until then: it may come
  /// back.
  Status open_again() {
    auto again = open_file(file_, {.create = false, .read_only = read_only_});
    if (!again) return std::move(again).error().with(std::string(went_away));
    prepared_.clear();
    database_ = *std::move(again);
    has_written_ = false;
    ++generation_;
    return {};
  }
  Result<Statement*> prepare(std::string_view text) {
    if (const auto at = prepared_.find(text); at != prepared_.end()) return &at->second;
    FURLONG_TRY(Statement statement, database_.prepare(text));
    return &prepared_.emplace(text, std::move(statement)).first->second;
  }
  static void bind(Statement& statement, std::span<const sql::Value> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      std::visit([&](const auto& value) { statement.bind(static_cast<int>(i + 1), value); }, values[i]);
  }
  /// false: no more is wanted.
  static Result<bool> run_once(Statement& statement, std::size_t index, const Visit& visit) {
    const SqliteRow row(statement);
    for (;;) {
      FURLONG_TRY(const bool there, statement.step());
      if (!there) return true;
      if (!visit) continue;
      FURLONG_TRY(const bool more, visit(index, row));
      if (!more) return false;
    }
  }

  Database database_;
  std::filesystem::path file_;
  std::string name_;
  bool read_only_;
  bool has_written_ = false;
  std::uint64_t generation_ = 0;
  std::map<std::string, Statement, std::less<>> prepared_;
};

Result<std::int64_t> integer_of(Database& database, std::string_view query) {
  FURLONG_TRY(Statement statement, database.prepare(query));
  FURLONG_CHECK(statement.step());
  return statement.integer(0);
}

/// That a database is a fleet's store, or still empty.
Status check_kind(Database& database, const std::filesystem::path& file) {
  FURLONG_TRY(const std::int64_t id, integer_of(database, "PRAGMA application_id"));
  FURLONG_TRY(const std::int64_t tables, integer_of(database, "SELECT count(*) FROM sqlite_master"));
  if (id == application_id || (id == 0 && tables == 0)) return {};
  return fail(Code::invalid, "{}: a database, but no fleet's store: choose another file", file.string());
}

Status prepare_schema(Database& database, const std::filesystem::path& file,
                      const StoreKind::Options& options) {
  FURLONG_CHECK(check_kind(database, file));
  std::vector<std::string> steps = sql::schema_steps(dialect);
  steps.front() += fmt::format("PRAGMA application_id={};", application_id);
  FURLONG_TRY(const std::int64_t version, database.schema_version());
  const auto newest = static_cast<std::int64_t>(steps.size());
  // Before migrate(), which takes its turn among the writers.
  if (version == newest) return {};
  if (version == 0 && (options.read_only || !options.create))
    return fail(Code::unavailable, "{}: an empty file, no store", file.string());
  if (!options.read_only) return database.migrate(steps);
  return fail(Code::incompatible, "{}: found schema version {}, expected {}: {}", file.string(), version,
              newest,
              version > newest ? "it was written by a newer Furlong"
                               : "open it once to be written, which brings it up to date");
}

Result<Database> open_file(const std::filesystem::path& file, const StoreKind::Options& options) {
  FURLONG_TRY(Database database, Database::open(file, {.create = options.create && !options.read_only,
                                                       .read_only = options.read_only,
                                                       .page_bytes = page_bytes,
                                                       .cache_kib = reader_cache_kib}));
  FURLONG_CHECK(prepare_schema(database, file, options));
  return database;
}

Result<std::unique_ptr<Store>> open(std::string_view url, const StoreKind::Options& options) {
  if (!url.starts_with(scheme) || url.size() == scheme.size())
    return fail(Code::invalid, "'{}' names no file: write sqlite:FILE", one_line(url));
  const std::filesystem::path file(url.substr(scheme.size()));
  std::error_code error;
  if ((!options.create || options.read_only) && !std::filesystem::exists(file, error) && !error)
    return fail(Code::unavailable,
                "{}: there is no store; furlong hub, fleet import and fleet simulate make one",
                file.string());
  FURLONG_TRY(Database database, open_file(file, options));
  return std::make_unique<sql::SqlStore>(
      std::make_unique<SqliteConnection>(std::move(database), file, options.read_only), options);
}

}  // namespace

StoreKind store_kind() { return {.scheme = "sqlite", .example = "sqlite:FILE", .open = open}; }

}  // namespace furlong::fleet::sqlite
