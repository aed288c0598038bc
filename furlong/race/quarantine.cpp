#include "furlong/race/quarantine.h"

#include <system_error>
#include <utility>

#include "furlong/base/log.h"
#include "furlong/base/sqlite.h"

namespace furlong::race {
namespace {

const std::vector<std::string>& migrations() {
  static const std::vector<std::string> steps{
      "CREATE TABLE variant ("
      " silicon TEXT NOT NULL, driver TEXT NOT NULL, source TEXT NOT NULL,"
      " program TEXT NOT NULL, variant TEXT NOT NULL, device TEXT NOT NULL,"
      " why TEXT NOT NULL, at TEXT NOT NULL, good INTEGER NOT NULL CHECK (good IN (0, 1)),"
      " evidence TEXT NOT NULL,"
      " PRIMARY KEY (silicon, driver, source)) STRICT, WITHOUT ROWID;"};
  return steps;
}

constexpr const char* kColumns = "silicon, driver, source, program, variant, device, why, at, good, evidence";

QuarantineEntry entry_of(const Statement& row) {
  QuarantineEntry entry;
  entry.key = {row.text(0), row.text(1), row.text(2)};
  entry.program = row.text(3);
  entry.variant = row.text(4);
  entry.device_label = row.text(5);
  entry.why = row.text(6);
  entry.when = row.text(7);
  entry.good = row.integer(8) != 0;
  entry.evidence = row.text(9);
  return entry;
}

// A damaged file, or something else in its place: it can be put aside.
bool is_damage(const Error& error) { return error.code() == Code::corrupt; }

std::string mend_of(const Error& error) {
  switch (error.code()) {
    case Code::corrupt:
      return "furlong quarantine clear --all puts it aside and begins a new one";
    case Code::incompatible:
      return "use that Furlong, or move the file away: a new one is begun";
    case Code::exhausted:
      return "free some space on its disk, or set FURLONG_STATE_DIR to a folder on another one";
    case Code::timeout:
      return "another process holds it: wait for its end, or set FURLONG_STATE_DIR to another folder";
    default:
      return "set FURLONG_STATE_DIR to a folder that can be written to";
  }
}

Result<Database> open_database(const std::filesystem::path& file) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error && error != std::errc::no_space_on_device)
    return fail(Code::denied, "{}: its folder cannot be made: {}", file.string(), error.message());
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(Code::corrupt, "{}: is no regular file", file.string());
  FURLONG_TRY(Database database, Database::open(file));
  FURLONG_CHECK(database.migrate(migrations()));
  // The version alone does not say whose file it is.
  const auto query = database.prepare(fmt::format("SELECT {} FROM variant", kColumns));
  if (!query && query.error().code() != Code::internal) return query.error();
  if (!query) return fail(Code::corrupt, "{}", query.error().message());
  return database;
}

// The first FILE.broken-N that is free, with what belongs to the file. Another process that still uses it
// goes on with the file that it has.
Result<std::filesystem::path> put_aside(const std::filesystem::path& file) {
  constexpr int kMost = 1000;
  for (int n = 1; n <= kMost; ++n) {
    const std::filesystem::path aside = fmt::format("{}.broken-{}", file.string(), n);
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(aside, error))) continue;
    std::filesystem::rename(file, aside, error);
    if (error)
      return fail(Code::denied, "{}: cannot be renamed to {}: {}; move it away yourself", file.string(),
                  aside.filename().string(), error.message());
    for (const char* part : {"-wal", "-shm"}) {
      std::error_code ignored;  // mostly they are not there
      std::filesystem::rename(file.string() + part, aside.string() + part, ignored);
    }
    return aside;
  }
  return fail(Code::exhausted, "{}: there are {} files .broken-N beside it: remove some", file.string(),
              kMost);
}

}  // namespace

struct Quarantine::Impl {
  std::filesystem::path file;
  std::optional<Database> database;
  std::optional<Error> broken;  // why there is no database
  bool told = false;            // somebody has got `broken`

  void open() {
    database.reset();
    broken.reset();
    told = false;
    auto opened = open_database(file);
    if (opened)
      database.emplace(*std::move(opened));
    else
      broken = worded(opened.error());
  }

  // As it is given to the caller.
  Error worded(const Error& error) const {
    const Code code = error.code() == Code::unavailable ? Code::denied : error.code();
    const std::string prefix = file.string() + ": ";  // messages of files begin with it
    const std::string text = error.text();
    return fail(code, "the quarantine {}: {}: {}", file.string(),
                text.starts_with(prefix) ? text.substr(prefix.size()) : text, mend_of(error));
  }

  Error tell() {
    told = true;
    return *broken;
  }

  template <class T>
  Result<T> give(Result<T> result) {
    if (result) return result;
    const Error error = worded(result.error());
    if (is_damage(error)) {  // what is damaged once is not asked again
      database.reset();
      broken = error;
      told = true;
    }
    return error;
  }

  Result<std::optional<QuarantineEntry>> find(const QuarantineKey& key);
  Result<std::vector<QuarantineEntry>> list();
  Result<int> clear(const std::string& what);
};

Quarantine::Quarantine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Quarantine::~Quarantine() = default;
Quarantine::Quarantine(Quarantine&&) noexcept = default;
Quarantine& Quarantine::operator=(Quarantine&&) noexcept = default;

Result<Quarantine> Quarantine::open(const std::filesystem::path& file) {
  auto impl = std::make_unique<Impl>(Impl{.file = file});
  impl->open();
  return Quarantine(std::move(impl));
}

Result<std::optional<QuarantineEntry>> Quarantine::Impl::find(const QuarantineKey& key) {
  FURLONG_TRY(Statement query,
              database->prepare(fmt::format(
                  "SELECT {} FROM variant WHERE silicon = ? AND driver = ? AND source = ?", kColumns)));
  query.bind(1, std::string_view(key.silicon));
  query.bind(2, std::string_view(key.driver));
  query.bind(3, std::string_view(key.source));
  FURLONG_TRY(const bool found, query.step());
  if (!found) return std::optional<QuarantineEntry>();
  return std::optional<QuarantineEntry>(entry_of(query));
}

Result<std::optional<QuarantineEntry>> Quarantine::find(const QuarantineKey& key) {
  if (impl_->broken) return impl_->tell();
  return impl_->give(impl_->find(key));
}

Status Quarantine::put(const QuarantineEntry& entry) {
  if (impl_->broken && impl_->told) return {};
  if (impl_->broken) return impl_->tell();
  FURLONG_TRY(Statement insert,
              impl_->database->prepare(fmt::format(
                  "INSERT INTO variant ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                  " ON CONFLICT (silicon, driver, source) DO UPDATE SET program = excluded.program,"
                  " variant = excluded.variant, device = excluded.device, why = excluded.why,"
                  " at = excluded.at, good = excluded.good, evidence = excluded.evidence"
                  " WHERE variant.good = 1 OR variant.evidence <> ''"
                  " OR (excluded.good = 0 AND excluded.evidence = '')",
                  kColumns)));
  int at = 0;
  for (const std::string* text : {&entry.key.silicon, &entry.key.driver, &entry.key.source, &entry.program,
                                  &entry.variant, &entry.device_label, &entry.why, &entry.when})
    insert.bind(++at, std::string_view(*text));
  insert.bind(++at, std::int64_t{entry.good});
  insert.bind(++at, std::string_view(entry.evidence));
  FURLONG_CHECK(insert.step());
  return {};
}

Result<std::vector<QuarantineEntry>> Quarantine::Impl::list() {
  FURLONG_TRY(
      Statement query,
      database->prepare(fmt::format(
          "SELECT {} FROM variant WHERE good = 0 ORDER BY at DESC, program, variant, source", kColumns)));
  std::vector<QuarantineEntry> entries;
  for (;;) {
    FURLONG_TRY(const bool more, query.step());
    if (!more) return entries;
    entries.push_back(entry_of(query));
  }
}

Result<std::vector<QuarantineEntry>> Quarantine::list() {
  if (impl_->broken) return impl_->tell();
  return impl_->give(impl_->list());
}

Result<int> Quarantine::Impl::clear(const std::string& what) {
  // substr and not LIKE: names may hold its wildcards.
  FURLONG_TRY(
      Statement remove,
      database->prepare("DELETE FROM variant WHERE good = 0 AND (substr(program, 1, length(?1)) = ?1 OR"
                        " substr(variant, 1, length(?1)) = ?1 OR substr(source, 1, length(?1)) = ?1)"
                        " RETURNING 1"));
  remove.bind(1, std::string_view(what));
  int removed = 0;
  for (;;) {
    FURLONG_TRY(const bool more, remove.step());
    if (!more) return removed;
    ++removed;
  }
}

Result<int> Quarantine::clear(const std::string& what) {
  auto cleared = impl_->broken ? Result<int>(impl_->tell()) : impl_->give(impl_->clear(what));
  if (cleared || !what.empty() || !is_damage(cleared.error())) return cleared;
  FURLONG_TRY(const std::filesystem::path aside, put_aside(impl_->file));
  log_warning("the quarantine {} is damaged: it is put aside as {}, and a new one begun",
              impl_->file.string(), aside.filename().string());
  impl_->open();
  if (impl_->broken) return impl_->tell();
  return 0;
}

}  // namespace furlong::race
