#include "furlong/fleet/agent/spool.h"

#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

const std::vector<std::string>& migrations() {
  static const std::vector<std::string> steps{R"(
    CREATE TABLE source (name TEXT PRIMARY KEY, offset INTEGER NOT NULL, tail TEXT NOT NULL) STRICT;
    CREATE TABLE record (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, line TEXT NOT NULL,
                         bytes INTEGER NOT NULL, batch TEXT, tries INTEGER NOT NULL DEFAULT 0) STRICT;
    CREATE INDEX record_batch ON record (batch);
    CREATE TABLE seen (number INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE refused (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, line TEXT NOT NULL,
                          why TEXT NOT NULL, at TEXT NOT NULL) STRICT;
    CREATE TABLE find (number INTEGER PRIMARY KEY AUTOINCREMENT, epoch TEXT NOT NULL, day INTEGER NOT NULL,
                       slot TEXT NOT NULL, nonce TEXT NOT NULL, hash TEXT NOT NULL, device TEXT NOT NULL,
                       at TEXT NOT NULL, taken INTEGER NOT NULL DEFAULT 0,
                       UNIQUE (epoch, day, slot, nonce)) STRICT;
    CREATE TABLE progress (number INTEGER PRIMARY KEY AUTOINCREMENT, epoch TEXT NOT NULL, day INTEGER NOT NULL,
                           slot TEXT NOT NULL, first TEXT NOT NULL, next TEXT NOT NULL,
                           UNIQUE (epoch, day, slot)) STRICT;
    CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE count (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  )",
                                              // Two devices that find one nonce have found one thing.
                                              R"(
    CREATE TABLE find_2 (number INTEGER PRIMARY KEY AUTOINCREMENT, epoch TEXT NOT NULL, day INTEGER NOT NULL,
                         slot TEXT NOT NULL, nonce TEXT NOT NULL, hash TEXT NOT NULL, device TEXT NOT NULL,
                         at TEXT NOT NULL, taken INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0,
                         UNIQUE (epoch, day, nonce)) STRICT;
    INSERT OR IGNORE INTO find_2 (epoch, day, slot, nonce, hash, device, at, taken)
      SELECT epoch, day, slot, nonce, hash, device, at, taken FROM find ORDER BY taken DESC, number;
    DROP TABLE find;
    ALTER TABLE find_2 RENAME TO find;
    CREATE INDEX find_waiting ON find (tries, number) WHERE taken = 0;
    CREATE INDEX find_taken ON find (number) WHERE taken = 1;
    INSERT INTO count (key, value) SELECT 'finds', COUNT(*) FROM find;
    INSERT INTO count (key, value) SELECT 'finds_waiting', COUNT(*) FROM find WHERE taken = 0;
  )"};
  return steps;
}

constexpr std::int64_t progress_kept =
    512;  // pairs times devices; a schedule that jumps back finds its place

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

Result<std::uint64_t> from_hex64(const std::string& text) {
  FURLONG_TRY(const Bytes bytes, from_hex(text));
  if (bytes.size() != 8) return fail(Code::corrupt, "the spool holds '{}' where 16 digits are wanted", text);
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

void bind_all(Statement&, int) {}
template <class First, class... Rest>
void bind_all(Statement& statement, int position, const First& first, const Rest&... rest) {
  if constexpr (std::is_integral_v<First>)
    statement.bind(position, static_cast<std::int64_t>(first));
  else
    statement.bind(position, std::string_view(first));
  bind_all(statement, position + 1, rest...);
}

Result<Find> find_of(const Statement& row) {
  Find find;
  find.pair = {.epoch = row.text(0), .day = row.integer(1)};
  find.slot = row.text(2);
  FURLONG_TRY(find.nonce, from_hex64(row.text(3)));
  FURLONG_TRY(find.hash, from_hex64(row.text(4)));
  find.device = row.text(5);
  find.at = row.text(6);
  return find;
}

}  // namespace

template <class... Values>
Status Spool::change(std::string_view sql, const Values&... values) {
  FURLONG_TRY(Statement statement, database_.prepare(sql));
  bind_all(statement, 1, values...);
  FURLONG_CHECK(statement.step());
  return {};
}

template <class... Values>
Result<std::int64_t> Spool::number(std::string_view sql, const Values&... values) {
  FURLONG_TRY(Statement statement, database_.prepare(sql));
  bind_all(statement, 1, values...);
  FURLONG_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

Status Spool::transaction(const std::function<Status()>& change) {
  FURLONG_CHECK(database_.execute("BEGIN IMMEDIATE"));
  Status done = change();
  if (done) done = database_.execute("COMMIT");
  if (!done) {
    const Status undone = database_.execute("ROLLBACK");
    static_cast<void>(undone);  // the first error is the one to tell; SQLite may have rolled back already
  }
  return done;
}

Result<std::unique_ptr<Spool>> Spool::open(const std::filesystem::path& file, const SpoolLimits& limits) {
  FURLONG_TRY(Database database, Database::open(file));
  FURLONG_CHECK(database.migrate(migrations()));
  if (limits.pages > 0)
    FURLONG_CHECK(database.execute(fmt::format("PRAGMA max_page_count={}", limits.pages)));
  return std::unique_ptr<Spool>(new Spool(std::move(database), limits));
}

Status Spool::add_to_count(std::string_view key, std::int64_t more) {
  if (more == 0) return {};
  return change(
      "INSERT INTO count (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = value + ?2",
      key, more);
}

// --- records in

Result<SourceMark> Spool::source(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(Statement query, database_.prepare("SELECT offset, tail FROM source WHERE name = ?1"));
  query.bind(1, name);
  FURLONG_TRY(const bool row, query.step());
  if (!row) return SourceMark{};
  return SourceMark{.offset = static_cast<std::uint64_t>(query.integer(0)), .tail = query.text(1)};
}

Result<bool> Spool::has_room(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(const std::int64_t pending, number("SELECT COALESCE(SUM(bytes), 0) FROM record"));
  return pending + static_cast<std::int64_t>(bytes) <= limits_.pending_bytes;
}

Result<int> Spool::take_in(std::string_view name, const SourceMark& mark,
                           const std::vector<NewRecord>& records, int skipped_lines) {
  const std::scoped_lock lock(mutex_);
  int added = 0;
  const Status done = transaction([&]() -> Status {
    for (const NewRecord& each : records) {
      FURLONG_TRY(const std::int64_t known,
                  number("SELECT COUNT(*) FROM seen WHERE digest = ?1", each.digest));
      if (known != 0) continue;
      FURLONG_CHECK(change("INSERT INTO seen (digest) VALUES (?1)", each.digest));
      FURLONG_CHECK(change("INSERT OR IGNORE INTO record (id, line, bytes) VALUES (?1, ?2, ?3)", each.id,
                           each.line, each.line.size()));
      ++added;
    }
    FURLONG_CHECK(change("INSERT OR REPLACE INTO source (name, offset, tail) VALUES (?1, ?2, ?3)", name,
                         mark.offset, mark.tail));
    FURLONG_CHECK(
        change("DELETE FROM seen WHERE number <= (SELECT MAX(number) FROM seen) - ?1", limits_.digests_kept));
    return add_to_count("skipped_lines", skipped_lines);
  });
  if (!done) return done.error();
  return added;
}

Status Spool::adopt(const std::string& machine,
                    const std::function<std::string(const std::string& line)>& rewrite) {
  FURLONG_TRY(const std::string before, fact("machine"));
  if (before == machine) return {};
  const std::scoped_lock lock(mutex_);
  return transaction([&]() -> Status {
    std::int64_t last = 0;
    for (;;) {  // one at a time: together they may be as large as the spool
      std::string line;
      {
        FURLONG_TRY(Statement query, database_.prepare("SELECT number, line FROM record WHERE number > ?1 "
                                                       "ORDER BY number LIMIT 1"));
        query.bind(1, last);
        FURLONG_TRY(const bool row, query.step());
        if (!row) break;
        last = query.integer(0);
        line = rewrite(query.text(1));
      }
      FURLONG_CHECK(change("UPDATE record SET line = ?1, bytes = ?2, batch = NULL WHERE number = ?3", line,
                           line.size(), last));
    }
    return change("INSERT OR REPLACE INTO fact (key, value) VALUES ('machine', ?1)", machine);
  });
}

// --- records out

Result<std::string> Spool::open_batch(std::size_t most_records, std::size_t most_bytes,
                                      const std::function<std::string()>& make_id) {
  std::vector<std::int64_t> chosen;
  {
    FURLONG_TRY(Statement query,
                database_.prepare("SELECT number, bytes FROM record ORDER BY tries, number LIMIT ?1"));
    query.bind(1, static_cast<std::int64_t>(most_records));
    std::size_t bytes = 0;
    for (;;) {
      FURLONG_TRY(const bool row, query.step());
      if (!row) break;
      bytes += static_cast<std::size_t>(query.integer(1)) + 1;
      if (!chosen.empty() && bytes > most_bytes) break;
      chosen.push_back(query.integer(0));
    }
  }
  if (chosen.empty()) return std::string();
  std::string id = make_id();
  const Status done = transaction([&]() -> Status {
    for (const std::int64_t each : chosen)
      FURLONG_CHECK(change("UPDATE record SET batch = ?1 WHERE number = ?2", id, each));
    return {};
  });
  if (!done) return done.error();
  return id;
}

Result<std::optional<RecordBatch>> Spool::next_batch(std::size_t most_records, std::size_t most_bytes,
                                                     const std::string& machine,
                                                     const std::function<std::string()>& make_id) {
  const std::scoped_lock lock(mutex_);
  RecordBatch batch;
  batch.machine = machine;
  {
    FURLONG_TRY(Statement query,
                database_.prepare("SELECT batch FROM record WHERE batch IS NOT NULL ORDER BY batch LIMIT 1"));
    FURLONG_TRY(const bool row, query.step());
    if (row) batch.id = query.text(0);
  }
  if (batch.id.empty()) {
    FURLONG_TRY(batch.id, open_batch(most_records, most_bytes, make_id));
    if (batch.id.empty()) return std::optional<RecordBatch>();
  }
  FURLONG_TRY(Statement query, database_.prepare("SELECT line FROM record WHERE batch = ?1 ORDER BY number"));
  query.bind(1, std::string_view(batch.id));
  for (;;) {
    FURLONG_TRY(const bool row, query.step());
    if (!row) break;
    batch.lines.push_back(query.text(0));
  }
  return std::optional(std::move(batch));
}

Result<Spool::Settled> Spool::settle(const RecordBatch& batch, const BatchReply& reply,
                                     std::string_view now) {
  const std::scoped_lock lock(mutex_);
  Settled settled;
  const auto there = [&](const std::string& id) {
    return number("SELECT COUNT(*) FROM record WHERE id = ?1 AND batch = ?2", id, batch.id);
  };
  const auto gone = [&](const std::vector<std::string>& ids, int& count) -> Status {
    for (const std::string& id : ids) {
      FURLONG_TRY(const std::int64_t known, there(id));
      ++(known != 0 ? count : settled.foreign);
      if (known != 0) FURLONG_CHECK(change("DELETE FROM record WHERE id = ?1", id));
    }
    return {};
  };
  const Status done = transaction([&]() -> Status {
    settled = {};
    FURLONG_CHECK(gone(reply.accepted, settled.accepted));
    FURLONG_CHECK(gone(reply.duplicate, settled.duplicate));
    for (const BatchReply::Refused& each : reply.refused) {
      FURLONG_TRY(const std::int64_t known, there(each.id));
      ++(known != 0 ? settled.refused : settled.foreign);
      if (known == 0) continue;
      FURLONG_CHECK(
          change("INSERT INTO refused (id, line, why, at) SELECT id, line, ?2, ?3 FROM record WHERE id = ?1",
                 each.id, each.why, now));
      FURLONG_CHECK(change("DELETE FROM record WHERE id = ?1", each.id));
    }
    FURLONG_TRY(const std::int64_t left, number("SELECT COUNT(*) FROM record WHERE batch = ?1", batch.id));
    settled.left = static_cast<int>(left);
    FURLONG_CHECK(change("UPDATE record SET batch = NULL, tries = tries + 1 WHERE batch = ?1", batch.id));
    FURLONG_CHECK(change("DELETE FROM refused WHERE number <= (SELECT MAX(number) FROM refused) - ?1",
                         limits_.refused_kept));
    FURLONG_CHECK(add_to_count("delivered", settled.accepted));
    FURLONG_CHECK(add_to_count("duplicate", settled.duplicate));
    return add_to_count("refused", settled.refused);
  });
  if (!done) return done.error();
  return settled;
}

Status Spool::release(std::string_view batch) {
  const std::scoped_lock lock(mutex_);
  return change("UPDATE record SET batch = NULL, tries = tries + 1 WHERE batch = ?1", batch);
}

Result<std::vector<Spool::Refused>> Spool::refused(int most) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(Statement query,
              database_.prepare("SELECT id, why, at FROM refused ORDER BY number DESC LIMIT ?1"));
  query.bind(1, static_cast<std::int64_t>(most));
  std::vector<Refused> list;
  for (;;) {
    FURLONG_TRY(const bool row, query.step());
    if (!row) return list;
    list.push_back({.id = query.text(0), .why = query.text(1), .at = query.text(2)});
  }
}

// --- finds

Result<bool> Spool::add_find(const Find& find) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(const std::int64_t known,
              number("SELECT COUNT(*) FROM find WHERE epoch = ?1 AND day = ?2 AND nonce = ?3",
                     find.pair.epoch, find.pair.day, hex(find.nonce)));
  if (known != 0) return false;
  const Status done = transaction([&]() -> Status {
    FURLONG_CHECK(change(
        "INSERT INTO find (epoch, day, slot, nonce, hash, device, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        find.pair.epoch, find.pair.day, find.slot, hex(find.nonce), hex(find.hash), find.device, find.at));
    FURLONG_CHECK(add_to_count("finds", 1));
    FURLONG_CHECK(add_to_count("finds_waiting", 1));
    return prune_finds();
  });
  if (!done) return done.error();
  return true;
}

Status Spool::prune_finds() {
  FURLONG_CHECK(change("DELETE FROM find WHERE taken = 1 AND number <= (SELECT MAX(number) FROM find) - ?1",
                       limits_.finds_kept));
  if (limits_.finds_wait) return {};
  FURLONG_CHECK(
      change("DELETE FROM find WHERE number <= (SELECT MAX(number) FROM find) - ?1", limits_.finds_kept));
  FURLONG_TRY(const std::int64_t gone, number("SELECT changes()"));
  return add_to_count("finds_waiting", -gone);
}

Result<std::optional<Spool::WaitingFind>> Spool::waiting_find(int least, int most) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(
      Statement query,
      database_.prepare("SELECT epoch, day, slot, nonce, hash, device, at, tries FROM find "
                        "WHERE taken = 0 AND tries BETWEEN ?1 AND ?2 ORDER BY tries, number LIMIT 1"));
  bind_all(query, 1, least, most);
  FURLONG_TRY(const bool row, query.step());
  if (!row) return std::optional<WaitingFind>();
  FURLONG_TRY(Find find, find_of(query));
  return std::optional(WaitingFind{.find = std::move(find), .tries = static_cast<int>(query.integer(7))});
}

Status Spool::find_taken(const Find& find) {
  const std::scoped_lock lock(mutex_);
  return transaction([&]() -> Status {
    FURLONG_CHECK(
        change("UPDATE find SET taken = 1 WHERE taken = 0 AND epoch = ?1 AND day = ?2 AND nonce = ?3",
               find.pair.epoch, find.pair.day, hex(find.nonce)));
    FURLONG_TRY(const std::int64_t taken, number("SELECT changes()"));
    return add_to_count("finds_waiting", -taken);
  });
}

Status Spool::find_refused(const Find& find) {
  const std::scoped_lock lock(mutex_);
  return change("UPDATE find SET tries = tries + 1 WHERE epoch = ?1 AND day = ?2 AND nonce = ?3",
                find.pair.epoch, find.pair.day, hex(find.nonce));
}

Status Spool::forget_tries() {
  const std::scoped_lock lock(mutex_);
  return change("UPDATE find SET tries = 0 WHERE taken = 0 AND tries > 0");
}

// --- nonces

Result<std::optional<Spool::Progress>> Spool::progress(const record::Pair& pair, std::string_view slot) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(Statement query,
              database_.prepare("SELECT first, next FROM progress WHERE epoch = ?1 AND day = ?2 "
                                "AND slot = ?3"));
  bind_all(query, 1, pair.epoch, pair.day, slot);
  FURLONG_TRY(const bool row, query.step());
  if (!row) return std::optional<Progress>();
  Progress progress;
  FURLONG_TRY(progress.first, from_hex64(query.text(0)));
  FURLONG_TRY(progress.next, from_hex64(query.text(1)));
  return std::optional(progress);
}

Status Spool::set_progress(const record::Pair& pair, std::string_view slot, const Progress& progress) {
  const std::scoped_lock lock(mutex_);
  return transaction([&]() -> Status {
    FURLONG_CHECK(
        change("INSERT INTO progress (epoch, day, slot, first, next) VALUES (?1, ?2, ?3, ?4, ?5) "
               "ON CONFLICT (epoch, day, slot) DO UPDATE SET first = ?4, next = ?5",
               pair.epoch, pair.day, slot, hex(progress.first), hex(progress.next)));
    return change("DELETE FROM progress WHERE number <= (SELECT MAX(number) FROM progress) - ?1",
                  progress_kept);
  });
}

// --- small facts

Result<std::string> Spool::fact(std::string_view key) {
  const std::scoped_lock lock(mutex_);
  FURLONG_TRY(Statement query, database_.prepare("SELECT value FROM fact WHERE key = ?1"));
  query.bind(1, key);
  FURLONG_TRY(const bool row, query.step());
  return row ? query.text(0) : std::string();
}

Status Spool::set_fact(std::string_view key, std::string_view value) {
  const std::scoped_lock lock(mutex_);
  return change("INSERT OR REPLACE INTO fact (key, value) VALUES (?1, ?2)", key, value);
}

Result<SpoolCounts> Spool::counts() {
  const std::scoped_lock lock(mutex_);
  SpoolCounts counts;
  const auto kept = [&](std::string_view key) {
    return number("SELECT value FROM count WHERE key = ?1", key);
  };
  FURLONG_TRY(counts.pending, number("SELECT COUNT(*) FROM record"));
  FURLONG_TRY(counts.pending_bytes, number("SELECT COALESCE(SUM(bytes), 0) FROM record"));
  FURLONG_TRY(counts.delivered, kept("delivered"));
  FURLONG_TRY(counts.duplicate, kept("duplicate"));
  FURLONG_TRY(counts.refused, kept("refused"));
  FURLONG_TRY(counts.skipped_lines, kept("skipped_lines"));
  FURLONG_TRY(counts.finds, kept("finds"));
  FURLONG_TRY(counts.finds_waiting, kept("finds_waiting"));
  return counts;
}

}  // namespace furlong::fleet
