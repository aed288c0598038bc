#include "furlong/base/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <system_error>

namespace furlong {
namespace {

Code code_of(int result) {
  switch (result & 0xFF) {  // the low byte is the primary code
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::timeout;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return Code::exhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::corrupt;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Code::denied;
    case SQLITE_CANTOPEN:
      return Code::unavailable;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return Code::invalid;
    default:
      return Code::internal;
  }
}

// Whether a result is about the file, whatever the statement was: its text would tell a reader nothing.
bool about_the_file(int primary) {
  return primary == SQLITE_NOTADB || primary == SQLITE_CORRUPT || primary == SQLITE_CANTOPEN ||
         primary == SQLITE_IOERR || primary == SQLITE_FULL || primary == SQLITE_READONLY ||
         primary == SQLITE_NOMEM;
}

// What can be done about it, where that is always the same.
std::string_view mend_of(int primary, int number) {
  if (primary == SQLITE_NOTADB) return "; it is another kind of file, or damaged at its very start";
  if (primary == SQLITE_CORRUPT) return "; put a backup in its place";
  if (primary == SQLITE_CANTOPEN && number == ENOENT) return "; the file or its folder is not there";
  if (primary == SQLITE_READONLY || (primary == SQLITE_CANTOPEN && number == EACCES))
    return "; this user may not write the file, or in its folder";
  return "";
}

Error error_of(sqlite3* database, const std::string& name, std::string_view doing) {
  const int left = errno;
  const int result = sqlite3_extended_errcode(database);
  const int primary = result & 0xFF;
  // Behind these the system has said more: SQLite tells a full disk as such in one of its functions only.
  // After a COMMIT it has forgotten; what the last call of the system left is then the best there is.
  int number = 0;
  if (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) {
    number = sqlite3_system_errno(database);
    if (number == 0) number = left;
  }
  Code code = code_of(result);
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) code = Code::exhausted;
  if (number == EACCES || number == EPERM || number == EROFS) code = Code::denied;
  return fail(code, "{}: {}{}{} (SQLite {}{}{}){}", name, about_the_file(primary) ? "" : doing,
              about_the_file(primary) ? "" : ": ", sqlite3_errmsg(database), result, number != 0 ? ", " : "",
              number != 0 ? std::generic_category().message(number) : "", mend_of(primary, number));
}

// What a statement is about, for a message: its first line, cut.
std::string_view brief(std::string_view sql) {
  sql = sql.substr(0, sql.find('\n'));
  return sql.substr(0, 80);
}

}  // namespace

struct Database::State {
  sqlite3* handle = nullptr;
  std::string name;
  ~State() { sqlite3_close_v2(handle); }  // v2: waits for statements that outlive the Database
};

struct Statement::State {
  sqlite3_stmt* handle = nullptr;
  std::string name;
  int bind_result = SQLITE_OK;  // the first failed bind: told by the next step
  ~State() { sqlite3_finalize(handle); }
  void bound(int result) {
    if (bind_result == SQLITE_OK) bind_result = result;
  }
};

Statement::Statement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Statement::~Statement() = default;
Statement::Statement(Statement&&) noexcept = default;
Statement& Statement::operator=(Statement&&) noexcept = default;

void Statement::bind(int position, std::int64_t value) {
  state_->bound(sqlite3_bind_int64(state_->handle, position, value));
}
void Statement::bind(int position, double value) {
  state_->bound(sqlite3_bind_double(state_->handle, position, value));
}
void Statement::bind(int position, std::string_view value) {
  // A null pointer would bind NULL: an empty text is a text.
  const char* data = value.data() == nullptr ? "" : value.data();
  state_->bound(
      sqlite3_bind_text64(state_->handle, position, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
void Statement::bind(int position, ByteView value) {
  static constexpr char nothing = 0;
  const void* data = value.data() == nullptr ? static_cast<const void*>(&nothing) : value.data();
  state_->bound(sqlite3_bind_blob64(state_->handle, position, data, value.size(), SQLITE_TRANSIENT));
}
void Statement::bind_null(int position) { state_->bound(sqlite3_bind_null(state_->handle, position)); }

Result<bool> Statement::step() {
  if (state_->bind_result != SQLITE_OK)
    return fail(state_->bind_result == SQLITE_RANGE ? Code::internal : code_of(state_->bind_result),
                "{}: binding a value of '{}': {}", state_->name, brief(sqlite3_sql(state_->handle)),
                sqlite3_errstr(state_->bind_result));
  errno = 0;
  const int result = sqlite3_step(state_->handle);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  Error error = error_of(sqlite3_db_handle(state_->handle), state_->name, brief(sqlite3_sql(state_->handle)));
  sqlite3_reset(state_->handle);
  return error;
}

void Statement::reset() {
  sqlite3_reset(state_->handle);
  sqlite3_clear_bindings(state_->handle);
  state_->bind_result = SQLITE_OK;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(state_->handle, column); }
double Statement::number(int column) const { return sqlite3_column_double(state_->handle, column); }
std::string Statement::text(int column) const { return std::string(text_view(column)); }
std::string_view Statement::text_view(int column) const {
  const unsigned char* data = sqlite3_column_text(state_->handle, column);
  if (data == nullptr) return {};
  return {reinterpret_cast<const char*>(data),
          static_cast<std::size_t>(sqlite3_column_bytes(state_->handle, column))};
}
ByteView Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(state_->handle, column);
  if (data == nullptr) return {};
  return {static_cast<const std::uint8_t*>(data),
          static_cast<std::size_t>(sqlite3_column_bytes(state_->handle, column))};
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(state_->handle, column) == SQLITE_NULL;
}

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

Result<Database> Database::open(const std::filesystem::path& file, const DatabaseOptions& options) {
  auto state = std::make_unique<State>();
  state->name = file.string();
  const int flags = options.read_only ? SQLITE_OPEN_READONLY
                                      : SQLITE_OPEN_READWRITE | (options.create ? SQLITE_OPEN_CREATE : 0);
  const int result = sqlite3_open_v2(state->name.c_str(), &state->handle,
                                     flags | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (state->handle == nullptr)
    return fail(Code::exhausted, "{}: opening the database: not enough memory", state->name);
  if (result != SQLITE_OK) return error_of(state->handle, state->name, "opening the database");
  sqlite3_busy_timeout(state->handle, options.busy_timeout_ms);
  Database database(std::move(state));
  // SQLite opens a file that it may not write to be read, and says so at the first write only.
  if (!options.read_only && sqlite3_db_readonly(database.state_->handle, "main") == 1)
    return fail(Code::denied, "{}: this user may not write it", database.state_->name);
  if (options.cache_kib > 0)
    FURLONG_CHECK(database.execute(fmt::format("PRAGMA cache_size=-{}", options.cache_kib)));
  if (options.page_bytes > 0)
    FURLONG_CHECK(database.execute(fmt::format("PRAGMA page_size={}", options.page_bytes)));
  // Reads the header, so that a file that is no database is refused here and not at some later query.
  // WAL: readers and one writer do not wait for each other. FULL: what was committed survives a
  // power cut (WAL's default would not promise that).
  FURLONG_CHECK(database.execute("PRAGMA schema_version"));
  if (database.state_->name != ":memory:" && !options.read_only) {
    FURLONG_CHECK(database.use_write_ahead_log(options.busy_timeout_ms));
    FURLONG_CHECK(database.execute("PRAGMA synchronous=FULL"));
  }
  FURLONG_CHECK(database.execute("PRAGMA foreign_keys=ON"));
  return database;
}

Status Database::use_write_ahead_log(int busy_timeout_ms) {
  // SQLite does not apply its busy timeout to this change, which processes that open a new file at the
  // same time all attempt.
  for (int waited_ms = 0;; waited_ms += 20) {
    Status changed = execute("PRAGMA journal_mode=WAL");
    if (changed || changed.error().code() != Code::timeout || waited_ms >= busy_timeout_ms) return changed;
    sqlite3_sleep(20);
  }
}

Result<Database> Database::in_memory() { return open(":memory:"); }

Status Database::execute(std::string_view sql) {
  const std::string text(sql);  // sqlite3_exec wants a closing zero
  errno = 0;
  if (sqlite3_exec(state_->handle, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return error_of(state_->handle, state_->name, brief(sql));
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  auto state = std::make_unique<Statement::State>();
  state->name = state_->name;
  const char* rest = nullptr;
  if (sqlite3_prepare_v3(state_->handle, sql.data(), static_cast<int>(sql.size()), 0, &state->handle,
                         &rest) != SQLITE_OK)
    return error_of(state_->handle, state_->name, brief(sql));
  if (state->handle == nullptr)
    return fail(Code::internal, "{}: '{}' holds no SQL statement", state_->name, brief(sql));
  const std::string_view remaining = sql.substr(static_cast<std::size_t>(rest - sql.data()));
  if (remaining.find_first_not_of(" \t\r\n;") != std::string_view::npos)
    return fail(Code::internal, "{}: prepare takes one statement; after it stands '{}'", state_->name,
                brief(remaining));
  return Statement(std::move(state));
}

Status Database::migrate(const std::vector<std::string>& steps) {
  // IMMEDIATE: two processes that open a new file at once take turns, and the second finds it done.
  FURLONG_CHECK(execute("BEGIN IMMEDIATE"));
  const auto migrated = [&]() -> Status {
    FURLONG_TRY(const std::int64_t version, schema_version());
    const auto newest = static_cast<std::int64_t>(steps.size());
    if (version < 0)
      return fail(Code::corrupt, "{}: found schema version {}, which nobody writes: the file is damaged",
                  state_->name, version);
    if (version > newest)
      return fail(Code::incompatible,
                  "{}: found schema version {}, expected at most {}: it was written by a newer Furlong",
                  state_->name, version, newest);
    for (std::int64_t i = version; i < newest; ++i)
      FURLONG_CHECK_DOING(execute(steps[static_cast<std::size_t>(i)]),
                          "migrating the schema from version {} to {}", i, i + 1);
    if (version != newest) FURLONG_CHECK(execute(fmt::format("PRAGMA user_version={}", newest)));
    return execute("COMMIT");
  }();
  if (!migrated) {
    const Status undone = execute("ROLLBACK");
    static_cast<void>(undone);  // the first error is the one to tell; SQLite rolls back on close as well
  }
  return migrated;
}

Result<std::int64_t> Database::schema_version() {
  FURLONG_TRY(Statement query, prepare("PRAGMA user_version"));
  FURLONG_CHECK(query.step());
  return query.integer(0);
}

Status Database::copy_to(const std::filesystem::path& file) {
  FURLONG_TRY(Statement copy, prepare("VACUUM INTO ?"));
  copy.bind(1, std::string_view(file.native()));
  auto done = copy.step();
  std::error_code unknown;
  if (!done && std::filesystem::exists(file, unknown) && done.error().code() == Code::internal)
    return fail(Code::invalid, "{}: {} is there already", state_->name, file.string());
  FURLONG_CHECK(done);
  return {};
}

bool Database::moved() const {
  int moved = 0;
  const int asked = sqlite3_file_control(state_->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return asked == SQLITE_OK && moved != 0;
}

std::string Database::version() { return sqlite3_libversion(); }

}  // namespace furlong
