#include "furlong/base/sqlite.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

namespace furlong {
namespace {

using testing::HasSubstr;

// Base's tests have no TemporaryFolder (base/os lies above), so they make their own.
class Sqlite : public testing::Test {
 protected:
  Sqlite() : folder_(std::filesystem::temp_directory_path() / fmt::format("furlong-sqlite-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Sqlite() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

std::int64_t count(Database& database, std::string_view sql) {
  auto query = database.prepare(sql);
  EXPECT_TRUE(query) << query.error().text();
  const auto row = query->step();
  EXPECT_TRUE(row && *row);
  return query->integer(0);
}

TEST_F(Sqlite, BindsStepsAndReads) {
  auto database = Database::in_memory();
  ASSERT_TRUE(database) << database.error().text();
  ASSERT_TRUE(database->execute("CREATE TABLE t(i INTEGER, d REAL, s TEXT, n TEXT) STRICT"));
  auto insert = database->prepare("INSERT INTO t VALUES(?, ?, ?, ?)");
  ASSERT_TRUE(insert);
  const std::string text("a\0é", 4);
  for (std::int64_t i = 0; i < 3; ++i) {
    insert->bind(1, i);
    insert->bind(2, 0.5);
    insert->bind(3, text);
    insert->bind_null(4);
    const auto done = insert->step();
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_FALSE(*done);
    insert->reset();
  }
  insert->bind(3, std::string_view());
  ASSERT_TRUE(insert->step());
  auto query = database->prepare("SELECT * FROM t ORDER BY i DESC");
  ASSERT_TRUE(*query->step());
  EXPECT_EQ(query->integer(0), 2);
  EXPECT_EQ(query->number(1), 0.5);
  EXPECT_EQ(query->text(2), text);
  EXPECT_TRUE(query->is_null(3));
  EXPECT_EQ(query->text(3), "");
  EXPECT_TRUE(*query->step());
  EXPECT_TRUE(*query->step());
  EXPECT_TRUE(*query->step());
  EXPECT_TRUE(query->is_null(0));
  EXPECT_FALSE(query->is_null(2)) << "an empty text is not NULL";
  EXPECT_FALSE(*query->step());
}

TEST_F(Sqlite, ErrorsNameTheFileAndTheStatement) {
  auto database = Database::open(folder_ / "a.db");
  ASSERT_TRUE(database);
  const Status status = database->execute("CREATE TABEL t(i)");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text(), HasSubstr("a.db"));
  EXPECT_THAT(status.error().text(), HasSubstr("CREATE TABEL"));
  EXPECT_FALSE(database->prepare("SELECT 1; SELECT 2"));
  EXPECT_FALSE(database->prepare("  "));
  ASSERT_TRUE(database->execute("CREATE TABLE t(i INTEGER PRIMARY KEY) STRICT"));
  ASSERT_TRUE(database->execute("INSERT INTO t VALUES(1)"));
  const Status twice = database->execute("INSERT INTO t VALUES(1)");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), Code::invalid);
  auto unbound = database->prepare("SELECT ?");
  unbound->bind(2, std::int64_t{1});
  EXPECT_FALSE(unbound->step()) << "a position that is not there";
}

const std::vector<std::string> two_steps = {"CREATE TABLE t(i INTEGER); INSERT INTO t VALUES(1)",
                                            "ALTER TABLE t ADD COLUMN s TEXT; INSERT INTO t VALUES(2, 'x')"};

TEST_F(Sqlite, MigratesStepByStepAndOnlyOnce) {
  const auto file = folder_ / "m.db";
  {
    auto database = Database::open(file);
    ASSERT_TRUE(database->migrate({two_steps[0]}));
    EXPECT_EQ(count(*database, "SELECT count(*) FROM t"), 1);
  }
  auto database = Database::open(file);
  ASSERT_TRUE(database->migrate(two_steps));
  ASSERT_TRUE(database->migrate(two_steps));
  EXPECT_EQ(count(*database, "SELECT count(*) FROM t"), 2);
  EXPECT_EQ(count(*database, "PRAGMA user_version"), 2);
}

TEST_F(Sqlite, AFailedMigrationChangesNothing) {
  auto database = Database::open(folder_ / "m.db");
  const Status failed = database->migrate({two_steps[0], two_steps[1] + "; NONSENSE"});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text(), HasSubstr("from version 1 to 2"));
  EXPECT_EQ(count(*database, "SELECT count(*) FROM sqlite_master"), 0);
  EXPECT_EQ(count(*database, "PRAGMA user_version"), 0);
  EXPECT_TRUE(database->migrate(two_steps)) << "the transaction was given up";
}

TEST_F(Sqlite, ANewerFileIsIncompatible) {
  const auto file = folder_ / "n.db";
  ASSERT_TRUE(Database::open(file)->migrate(two_steps));
  auto database = Database::open(file);
  const Status status = database->migrate({two_steps[0]});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::incompatible);
  EXPECT_THAT(status.error().text(), HasSubstr("found schema version 2, expected at most 1"));
  EXPECT_EQ(count(*database, "SELECT count(*) FROM t"), 2);
}

TEST_F(Sqlite, ANegativeVersionIsDamageAndNotTheFuture) {
  const auto file = folder_ / "n.db";
  auto database = Database::open(file);
  ASSERT_TRUE(database->execute("PRAGMA user_version=-3"));
  const Status status = database->migrate(two_steps);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::corrupt);
  EXPECT_THAT(status.error().text(), HasSubstr("n.db"));
  EXPECT_THAT(status.error().text(), HasSubstr("version -3"));
  EXPECT_THAT(status.error().text(), testing::Not(HasSubstr("newer")));
}

TEST_F(Sqlite, ADamagedFileIsCorrupt) {
  const auto foreign = folder_ / "foreign.db";
  std::ofstream(foreign) << std::string(5000, 'x');
  const auto opened = Database::open(foreign);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::corrupt);
  EXPECT_THAT(opened.error().text(), HasSubstr("foreign.db: file is not a database"));
  EXPECT_THAT(opened.error().text(), HasSubstr("another kind of file"));

  const auto file = folder_ / "c.db";
  {
    auto database = Database::open(file);
    ASSERT_TRUE(database->execute("CREATE TABLE t(s TEXT)"));
    ASSERT_TRUE(
        database->execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000) "
                          "INSERT INTO t SELECT hex(randomblob(50)) FROM n"));
  }
  {
    std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(4096);
    damage << std::string(20 * 4096, '\x7F');
  }
  auto database = Database::open(file);
  ASSERT_TRUE(database);
  auto query = database->prepare("SELECT sum(length(s)) FROM t");
  ASSERT_TRUE(query);
  const auto row = query->step();
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code(), Code::corrupt);
  EXPECT_THAT(row.error().text(), HasSubstr("put a backup in its place"));
  EXPECT_THAT(row.error().text(), testing::Not(HasSubstr("SELECT")));
}

TEST_F(Sqlite, AFolderThatIsNotThereIsUnavailable) {
  const auto opened = Database::open(folder_ / "none" / "a.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::unavailable);
  EXPECT_THAT(opened.error().text(), HasSubstr("the file or its folder is not there"));
}

TEST_F(Sqlite, AFileThatThisUserMayNotWriteIsDeniedWhenItIsOpened) {
  const auto file = folder_ / "r.db";
  {
    ASSERT_TRUE(Database::open(file)->execute("CREATE TABLE t(i INTEGER)"));
  }
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::group_read |
                                         std::filesystem::perms::others_read);
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);  // root may write anything
  const auto opened = Database::open(file);
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::denied);
  EXPECT_THAT(opened.error().text(), HasSubstr("r.db: this user may not write it"));
}

TEST_F(Sqlite, AFullDatabaseIsExhausted) {
  auto database = Database::open(folder_ / "f.db");
  ASSERT_TRUE(database->execute("PRAGMA max_page_count=4; CREATE TABLE t(s TEXT)"));
  const Status status = database->execute("INSERT INTO t VALUES(hex(randomblob(100000)))");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::exhausted);
}

TEST_F(Sqlite, ANewFileOnAFullDiskIsExhausted) {
  // A file that may not grow: the system refuses the first write.
  struct rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto opened = Database::open(folder_ / "new.db");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::exhausted) << opened.error().text();
  EXPECT_THAT(opened.error().text(), HasSubstr("new.db"));
}

TEST_F(Sqlite, TwoConnectionsSeeEachOther) {
  auto one = Database::open(folder_ / "s.db");
  auto two = Database::open(folder_ / "s.db");
  ASSERT_TRUE(one->migrate(two_steps));
  ASSERT_TRUE(two->migrate(two_steps));
  EXPECT_EQ(count(*two, "SELECT count(*) FROM t"), 2);
}

TEST_F(Sqlite, ManyMayOpenANewFileAtOnce) {
  for (int round = 0; round < 5; ++round) {
    const auto file = folder_ / fmt::format("{}.db", round);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        auto database = Database::open(file);
        ASSERT_TRUE(database) << database.error().text();
        const Status migrated = database->migrate(two_steps);
        EXPECT_TRUE(migrated) << migrated.error().text();
      });
    threads.clear();
    auto database = Database::open(file);
    EXPECT_EQ(count(*database, "SELECT count(*) FROM t"), 2);
  }
}

TEST_F(Sqlite, BytesComeBackWithoutACopy) {
  auto database = Database::in_memory();
  ASSERT_TRUE(database->execute("CREATE TABLE t(b BLOB NOT NULL, s TEXT NOT NULL) STRICT"));
  const std::string bytes("\0\xff\x01", 3);
  auto insert = database->prepare("INSERT INTO t VALUES(?, ?)");
  insert->bind(1, as_bytes(bytes));
  insert->bind(2, std::string_view("text"));
  ASSERT_TRUE(insert->step());
  insert->reset();
  insert->bind(1, ByteView());
  insert->bind(2, std::string_view());
  ASSERT_TRUE(insert->step()) << "no bytes are not NULL";
  auto query = database->prepare("SELECT b, s FROM t ORDER BY rowid");
  ASSERT_TRUE(*query->step());
  EXPECT_EQ(as_text(query->blob(0)), bytes);
  EXPECT_EQ(query->text_view(1), "text");
  ASSERT_TRUE(*query->step());
  EXPECT_TRUE(query->blob(0).empty());
  EXPECT_TRUE(query->text_view(1).empty());
}

TEST_F(Sqlite, OpensOnlyWhatIsThereAndOnlyToRead) {
  const auto file = folder_ / "o.db";
  EXPECT_EQ(Database::open(file, {.create = false}).error().code(), Code::unavailable);
  EXPECT_EQ(Database::open(file, {.read_only = true}).error().code(), Code::unavailable);
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_TRUE(Database::open(file, {.page_bytes = 8192})->migrate(two_steps));
  EXPECT_TRUE(Database::open(file, {.create = false}));
  auto reader = Database::open(file, {.read_only = true});
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(count(*reader, "SELECT count(*) FROM t"), 2);
  EXPECT_EQ(count(*reader, "PRAGMA page_size"), 8192);
  EXPECT_EQ(*reader->schema_version(), 2);
  const Status denied = reader->execute("INSERT INTO t VALUES(3, 'y')");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code(), Code::denied);
}

TEST_F(Sqlite, AWriterThatWaitsTooLongIsToldSo) {
  const auto file = folder_ / "b.db";
  auto one = Database::open(file);
  ASSERT_TRUE(one->migrate(two_steps));
  auto two = Database::open(file, {.busy_timeout_ms = 30});
  ASSERT_TRUE(one->execute("BEGIN IMMEDIATE"));
  const Status busy = two->execute("BEGIN IMMEDIATE");
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code(), Code::timeout);
  EXPECT_EQ(count(*two, "SELECT count(*) FROM t"), 2) << "readers do not wait";
  ASSERT_TRUE(one->execute("COMMIT"));
  EXPECT_TRUE(two->execute("BEGIN IMMEDIATE"));
}

TEST_F(Sqlite, ACopyIsOfOneMomentAndOfANewFile) {
  auto database = Database::open(folder_ / "f.db");
  ASSERT_TRUE(database->migrate(two_steps));
  auto reader = Database::open(folder_ / "f.db", {.read_only = true});
  ASSERT_TRUE(database->execute("BEGIN IMMEDIATE; INSERT INTO t VALUES(3, 'not yet')"));
  const Status copied = reader->copy_to(folder_ / "copy.db");
  ASSERT_TRUE(copied) << copied.error().text();
  ASSERT_TRUE(database->execute("COMMIT"));
  auto copy = Database::open(folder_ / "copy.db");
  EXPECT_EQ(count(*copy, "SELECT count(*) FROM t"), 2);
  EXPECT_EQ(*copy->schema_version(), 2);
  const Status again = database->copy_to(folder_ / "copy.db");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::invalid);
  EXPECT_THAT(again.error().text(), HasSubstr("copy.db"));
  EXPECT_EQ(count(*copy, "SELECT count(*) FROM t"), 2);
}

TEST_F(Sqlite, AStatementMayOutliveItsDatabase) {
  auto query = [] {
    auto database = Database::in_memory();
    return std::move(*database->prepare("SELECT 7"));
  }();
  ASSERT_TRUE(*query.step());
  EXPECT_EQ(query.integer(0), 7);
}

}  // namespace
}  // namespace furlong
