// The schema of a store in PostgreSQL: made, brought up to date, or only checked.
#include "furlong/fleet/store/sql/schema.h"

#include "furlong/base/text.h"
#include "furlong/fleet/store/postgres/internal/connection.h"

namespace furlong::fleet::postgres {
namespace {

constexpr sql::Dialect dialect{.big = "BIGINT",
                               .text = "TEXT COLLATE \"C\"",
                               .blob = "BYTEA",
                               .plain = "",
                               .clustered = "",
                               .id_index =
                                   "UNIQUE INDEX race_id ON race(id) INCLUDE (subject, machine, "
                                   "ts_us, label, driver, winner)"};

std::vector<std::string> steps() {
  std::vector<std::string> all = sql::schema_steps(dialect);
  all.front() += "ALTER TABLE batch_body ALTER COLUMN body SET STORAGE EXTERNAL;";  // it is compressed
  return all;
}

}  // namespace

Result<std::int64_t> PostgresConnection::schema_version() {
  FURLONG_TRY(const std::string there, text_of("SELECT 1 FROM pg_namespace WHERE nspname='furlong'"));
  if (there.empty()) return std::int64_t{0};
  FURLONG_TRY(const std::string text, text_of("SELECT version FROM furlong.schema_version"));
  return parse_integer(text);
}

Status PostgresConnection::prepare_schema() {
  // A store that is up to date keeps nobody waiting, and waits for nobody.
  FURLONG_TRY(const std::int64_t found, schema_version());
  if (found == static_cast<std::int64_t>(steps().size())) return {};
  const auto prepared = [&]() -> Status {
    const bool writes = !options_.read_only;
    FURLONG_CHECK(execute(writes ? "BEGIN" : "BEGIN READ ONLY"));
    // Those that open a new store at the same time take turns.
    if (writes) FURLONG_CHECK(text_of("SELECT pg_advisory_xact_lock(1179415412)"));
    FURLONG_TRY(const std::int64_t version, schema_version());
    if (version == 0 && (options_.read_only || !options_.create))
      return fail(Code::unavailable, "{}: the database has no fleet's store (no schema 'furlong')", name_);
    return migrate(version);
  }();
  if (!prepared) rollback();
  return prepared;
}

Status PostgresConnection::migrate(std::int64_t version) {
  const std::vector<std::string> all = steps();
  const auto newest = static_cast<std::int64_t>(all.size());
  if (version < 0)
    return fail(Code::corrupt, "{}: found schema version {}, which nobody writes", name_, version);
  if (version > newest)
    return fail(Code::incompatible,
                "{}: found schema version {}, expected at most {}: it was written by a newer Furlong", name_,
                version, newest);
  if (version < newest && options_.read_only)
    return fail(
        Code::incompatible,
        "{}: found schema version {}, expected {}: open it once to be written, which brings it up to date",
        name_, version, newest);
  if (version == 0)
    FURLONG_CHECK(
        execute("CREATE SCHEMA furlong; CREATE TABLE schema_version(version BIGINT NOT NULL); "
                "INSERT INTO schema_version VALUES(0)"));
  for (std::int64_t i = version; i < newest; ++i)
    FURLONG_CHECK_DOING(execute(all[static_cast<std::size_t>(i)]),
                        "migrating the schema from version {} to {}", i, i + 1);
  if (version != newest) FURLONG_CHECK(execute(fmt::format("UPDATE schema_version SET version={}", newest)));
  return execute("COMMIT");
}

}  // namespace furlong::fleet::postgres
