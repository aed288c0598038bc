#include "furlong/race/quarantine.h"

#include <utility>

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

}  // namespace

struct Quarantine::Impl {
  Database database;
};

Quarantine::Quarantine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Quarantine::~Quarantine() = default;
Quarantine::Quarantine(Quarantine&&) noexcept = default;
Quarantine& Quarantine::operator=(Quarantine&&) noexcept = default;

Result<Quarantine> Quarantine::open(const std::filesystem::path& file) {
  std::error_code ignored;  // what matters of it shows when the file is opened
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  FURLONG_TRY(Database database, Database::open(file));
  FURLONG_CHECK_DOING(database.migrate(migrations()), "opening the quarantine {}", file.string());
  return Quarantine(std::make_unique<Impl>(Impl{std::move(database)}));
}

Result<std::optional<QuarantineEntry>> Quarantine::find(const QuarantineKey& key) {
  FURLONG_TRY(Statement query,
              impl_->database.prepare(fmt::format(
                  "SELECT {} FROM variant WHERE silicon = ? AND driver = ? AND source = ?", kColumns)));
  query.bind(1, std::string_view(key.silicon));
  query.bind(2, std::string_view(key.driver));
  query.bind(3, std::string_view(key.source));
  FURLONG_TRY(const bool found, query.step());
  if (!found) return std::optional<QuarantineEntry>();
  return std::optional<QuarantineEntry>(entry_of(query));
}

Status Quarantine::put(const QuarantineEntry& entry) {
  FURLONG_TRY(Statement insert,
              impl_->database.prepare(fmt::format(
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

Result<std::vector<QuarantineEntry>> Quarantine::list() {
  FURLONG_TRY(
      Statement query,
      impl_->database.prepare(fmt::format(
          "SELECT {} FROM variant WHERE good = 0 ORDER BY at DESC, program, variant, source", kColumns)));
  std::vector<QuarantineEntry> entries;
  for (;;) {
    FURLONG_TRY(const bool more, query.step());
    if (!more) return entries;
    entries.push_back(entry_of(query));
  }
}

Result<int> Quarantine::clear(const std::string& what) {
  // substr and not LIKE: names may hold its wildcards.
  FURLONG_TRY(
      Statement remove,
      impl_->database.prepare("DELETE FROM variant WHERE good = 0 AND (substr(program, 1, length(?1)) = ?1 OR"
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

}  // namespace furlong::race
