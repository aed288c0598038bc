#include "furlong/fleet/store/sqlite/sqlite.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/sqlite.h"
#include "furlong/fleet/store/conformance/conformance.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

DecodedRace race_of(std::uint32_t number) {
  DecodedRace race;
  race.id[6] = 0x70;
  race.id[8] = 0x80;
  for (int i = 0; i < 4; ++i)
    race.id[static_cast<std::size_t>(15 - i)] = static_cast<std::uint8_t>(number >> (8 * i));
  race.ts_us = number;
  race.slot = "s";
  race.subject = {.silicon = "x", .backend = "cuda", .program = "lottery", .program_class = "{}"};
  race.epoch = fmt::format("{:016x}", number);
  race.source = "src";
  race.variants = {{.name = "base", .gain_pct = 0}, {.name = fmt::format("v{}", number % 7), .gain_pct = 1}};
  return race;
}

/// Batch `number` has ten races of its own, and text that does not compress.
IncomingBatch batch_of(std::uint32_t number) {
  IncomingBatch batch{.id = fmt::format("batch {}", number), .machine = "import:a", .body = "header\n"};
  Random random(number);
  for (std::uint32_t i = 0; i < 10; ++i) {
    for (int word = 0; word < 60; ++word) batch.body += fmt::format("{:016x}", random.next());
    batch.body += "\n";
    batch.lines.push_back({.id = "", .race = race_of(number * 10 + i)});
  }
  return batch;
}

class SqliteStore : public testing::Test {
 protected:
  SqliteStore() : folder_(std::move(*TemporaryFolder::make("furlong-store"))) {}
  std::filesystem::path file() const { return folder_.path() / "fleet.sqlite"; }
  Result<std::unique_ptr<Store>> open(const StoreKind::Options& options = {}) const {
    return open_at(file(), options);
  }
  static Result<std::unique_ptr<Store>> open_at(const std::filesystem::path& path,
                                                const StoreKind::Options& options = {}) {
    return sqlite::store_kind().open("sqlite:" + path.string(), options);
  }
  static Status add(Store& store, std::uint32_t number) {
    const IncomingBatch batch = batch_of(number);
    FURLONG_CHECK(store.add({&batch, 1}));
    return {};
  }
  static std::unique_ptr<Store> with_importer(Result<std::unique_ptr<Store>> store) {
    EXPECT_TRUE(store) << store.error().text();
    EXPECT_TRUE((*store)->add_importer("a", 1));
    return *std::move(store);
  }
  /// What is there is whole: the races of batches up to `count` without a gap, at least `least` batches.
  static void check_whole(Store& store, std::uint32_t least) {
    const auto content = store_content(store);
    ASSERT_TRUE(content) << content.error().text();
    const auto totals = store.totals();
    EXPECT_EQ(totals->races, totals->batches * 10) << "a batch is there with all of its races, or not at all";
    EXPECT_GE(totals->batches, least) << "what was acknowledged is there";
    EXPECT_LE(totals->batches, least + 1) << "one may have been finished just before it could be told";
    EXPECT_EQ(store.machine("import:a")->value().accepted, totals->races);
  }

  TemporaryFolder folder_;
};

TEST_F(SqliteStore, TheUrlNamesAFile) {
  for (const char* url : {"sqlite:", "fleet.sqlite", "postgresql://x"})
    EXPECT_EQ(sqlite::store_kind().open(url, {}).error().code(), Code::invalid) << url;
  const auto none = open_at(folder_.path() / "none" / "fleet.sqlite");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::unavailable);
  EXPECT_THAT(none.error().text(), HasSubstr("none/fleet.sqlite"));
  for (const StoreKind::Options& options :
       {StoreKind::Options{.create = false}, StoreKind::Options{.read_only = true}}) {
    const auto missing = open(options);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Code::unavailable);
    EXPECT_THAT(missing.error().text(), HasSubstr("there is no store"));
  }
  const StoreKind kinds[] = {sqlite::store_kind()};
  EXPECT_TRUE(open_store(kinds, file().string())) << "a bare file that ends so is SQLite's";
}

TEST_F(SqliteStore, AnotherProgramsDatabaseIsRefusedAndLeftAlone) {
  {
    auto other = Database::open(file());
    ASSERT_TRUE(other->migrate({"CREATE TABLE quarantine(i INTEGER)"}));
  }
  const auto store = open();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), Code::invalid);
  EXPECT_THAT(store.error().text(), HasSubstr("no fleet's store"));
  auto other = Database::open(file());
  EXPECT_TRUE(other->execute("INSERT INTO quarantine VALUES(1)"));
}

TEST_F(SqliteStore, ANewerSchemaIsIncompatible) {
  with_importer(open());
  ASSERT_TRUE(Database::open(file())->execute("PRAGMA user_version=9"));
  for (const bool read_only : {false, true}) {
    const auto store = open({.read_only = read_only});
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code(), Code::incompatible);
    EXPECT_THAT(store.error().text(), HasSubstr("found schema version 9, expected"));
  }
}

TEST_F(SqliteStore, DamageIsToldAsSuch) {
  std::ofstream(file()) << std::string(20'000, 'x');
  EXPECT_EQ(open().error().code(), Code::corrupt) << "no database at all";
  std::filesystem::remove(file());
  {
    const auto store = with_importer(open());
    for (std::uint32_t i = 1; i <= 30; ++i) ASSERT_TRUE(add(*store, i));
  }
  {
    std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 3; page < 60; ++page) {
      damage.seekp(page * 8192);
      damage << std::string(200, '\x7F');
    }
  }
  const auto store = open();
  Status status = store ? Status() : Status(Error(store.error()));
  if (status) {
    const auto content = store_content(**store);
    if (!content) status = Error(content.error());
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::corrupt) << status.error().text();
  EXPECT_THAT(status.error().text(), HasSubstr("fleet.sqlite"));
}

TEST_F(SqliteStore, ADamagedBodyIsToldWithItsBatch) {
  {
    const auto store = with_importer(open());
    ASSERT_TRUE(add(*store, 1));
  }
  {
    auto database = Database::open(file());
    ASSERT_TRUE(database->execute("UPDATE batch_body SET body=substr(body, 1, 100)"));
  }
  const auto store = open();
  const Status status = (*store)->batches(0, [](const StoredBatch&) -> Result<bool> { return true; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::corrupt);
  EXPECT_THAT(status.error().text(), HasSubstr("batch 1: its body is damaged"));
  ASSERT_TRUE(Database::open(file())->execute("UPDATE race SET data=x'0907'"));
  const Status scanned = (*store)->scan(1, {}, [](const RaceRow&) { return true; });
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code(), Code::corrupt);
  EXPECT_THAT(scanned.error().text(), HasSubstr("race 00000000-0000-7000-8000-00000000000a"));
}

TEST_F(SqliteStore, OpeningAndReadingWaitForNoWriter) {
  ASSERT_TRUE(add(*with_importer(open()), 1));
  auto writer = Database::open(file());
  ASSERT_TRUE(writer->execute("BEGIN IMMEDIATE"));
  for (const bool create : {true, false}) {
    const auto store = open({.create = create});
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_EQ((*store)->totals()->batches, 1u);
  }
  ASSERT_TRUE(writer->execute("ROLLBACK"));
}

// A store may have very many subjects, and what each is made of is of no use on a page.
TEST_F(SqliteStore, APageReadsOnlyTheSubjectsThatItShows) {
  {
    const auto store = with_importer(open());
    for (std::uint32_t i = 1; i <= 3; ++i) ASSERT_TRUE(add(*store, i));
  }
  ASSERT_TRUE(Database::open(file())->execute("UPDATE subject SET made_of='not read'"));
  const auto store = open();
  for (const RaceFilter& filter : {RaceFilter{}, RaceFilter{.program = "lottery"}}) {
    const auto page = (*store)->page(filter);
    ASSERT_TRUE(page) << page.error().text();
    ASSERT_EQ(page->races.size(), 30u);
    EXPECT_EQ(page->races[0].subject, race_of(1).subject);
  }
  EXPECT_FALSE((*store)->subjects()) << "aggregation does read it";
}

// One machine of very many, which was last heard of long ago: its races are not walked to.
TEST_F(SqliteStore, AMachinesRacesAreFoundAmongManyOthers) {
  const auto store = with_importer(open());
  ASSERT_TRUE(store->add_importer("rare", 1));
  IncomingBatch rare = batch_of(1);
  rare.machine = "import:rare";
  ASSERT_TRUE(store->add({&rare, 1}));
  for (std::uint32_t i = 2; i <= 40; ++i) ASSERT_TRUE(add(*store, i));
  RaceFilter filter{.machine = "import:rare", .limit = 3, .walk = 250};
  std::vector<std::string> ids, expected;
  for (std::uint32_t i = 20; i > 10; --i) expected.push_back(record_id_text(race_of(i - 1).id));
  for (int page = 0; page < 4; ++page) {
    const auto some = store->page(filter);
    ASSERT_TRUE(some) << some.error().text();
    ASSERT_FALSE(some->races.empty()) << "page " << page;
    for (const RaceSummary& race : some->races) ids.push_back(race.id);
    EXPECT_EQ(some->next.empty(), page == 3);
    filter.before = some->next;
  }
  EXPECT_EQ(ids, expected);
  filter = {.machine = "import:rare", .window = {13, 16}, .limit = 3, .walk = 250};
  const auto window = store->page(filter);
  ASSERT_EQ(window->races.size(), 3u);
  EXPECT_EQ(window->races[0].id, record_id_text(race_of(15).id));
  EXPECT_TRUE(window->next.empty());
  filter = {.machine = "import:rare", .limit = 3, .walk = 9};
  EXPECT_TRUE(store->page(filter)->races.empty()) << "ten are more than its walk";
  EXPECT_FALSE(store->page(filter)->next.empty());
}

TEST_F(SqliteStore, AKilledWriterLosesNothingThatWasAcknowledged) {
  with_importer(open());
  Random random(8);
  std::uint32_t acknowledged = 0;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = open();
      for (std::uint32_t number = acknowledged + 1; store && add(**store, number); ++number)
        if (::write(ends[1], &number, sizeof number) != sizeof number) break;
      ::_exit(1);
    }
    ::close(ends[1]);
    // However slow the machine is, some are written; the moment of the end is anywhere in the next.
    std::uint32_t number = 0;
    const auto told = [&] { return ::read(ends[0], &number, sizeof number) == sizeof number; };
    for (std::uint64_t count = random.below(6); told() && count > 0; --count) acknowledged = number;
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
    ::kill(child, SIGKILL);
    do acknowledged = std::max(acknowledged, number);
    while (told());
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it did not end by itself";
    const auto store = open();
    ASSERT_TRUE(store) << store.error().text();
    check_whole(**store, acknowledged);
    acknowledged = static_cast<std::uint32_t>((*store)->totals()->batches);
  }
  EXPECT_GT(acknowledged, 0u);
}

TEST_F(SqliteStore, AFileThatWasMovedTakesNothingUntilItIsBack) {
  const auto writer = with_importer(open());
  ASSERT_TRUE(add(*writer, 1));
  const auto reader = open({.create = false});
  const auto viewer = open({.read_only = true});
  ASSERT_TRUE((*reader)->totals());
  ASSERT_TRUE((*viewer)->totals());
  const std::filesystem::path away = folder_.path() / "away";
  const auto move = [](const std::filesystem::path& from, const std::filesystem::path& to) {
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::rename(from.native() + suffix, to.native() + suffix);
  };
  move(file(), away);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status lost = add(*writer, 2);
    ASSERT_FALSE(lost) << "nobody would find it again";
    EXPECT_EQ(lost.error().code(), Code::unavailable) << lost.error().text();
    EXPECT_THAT(lost.error().text(), HasSubstr("was moved or removed"));
    EXPECT_THAT(lost.error().text(), HasSubstr("fleet.sqlite"));
    EXPECT_EQ((*reader)->totals().error().code(), Code::unavailable) << "a reader says so as well";
    EXPECT_EQ((*viewer)->totals().error().code(), Code::unavailable);
    EXPECT_EQ(open({.create = false}).error().code(), Code::unavailable);
    EXPECT_FALSE(std::filesystem::exists(file())) << "none is made";
  }
  move(away, file());
  ASSERT_TRUE(add(*writer, 2)) << "it is back";
  EXPECT_EQ((*reader)->totals()->batches, 2u);
  EXPECT_EQ((*viewer)->totals()->batches, 2u);
  check_whole(**reader, 2);
}

TEST_F(SqliteStore, AFileThatTookTheNameOfTheOneThatWasOpenIsUsed) {
  const auto store = with_importer(open());
  ASSERT_TRUE(add(*store, 1));
  ASSERT_TRUE(add(*store, 2));
  {
    const auto other = with_importer(open_at(folder_.path() / "other.sqlite"));
    ASSERT_TRUE(add(*other, 3));
  }
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file().native() + suffix);
  std::ofstream(file()).close();
  EXPECT_EQ(add(*store, 4).error().code(), Code::unavailable)
      << "an empty file is no store, and none is made";
  std::filesystem::rename(folder_.path() / "other.sqlite", file());
  EXPECT_EQ(store->totals()->batches, 1u);
  const Status added = add(*store, 4);
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_EQ((*open())->totals()->batches, 2u) << "by its name it is found";
}

/// A file may grow by so many bytes and no more.
class GrowthLimit {
 public:
  explicit GrowthLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~GrowthLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(SqliteStore, AFileThatMayNotGrowIsExhaustedAndGoesOnAfter) {
  const auto store = with_importer(open());
  std::uint32_t added = 0;
  Status status;
  {
    const GrowthLimit limit(512 << 10);
    while (status && added < 2000) {
      status = add(*store, added + 1);
      if (status) ++added;
    }
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::exhausted) << status.error().text();
    EXPECT_THAT(status.error().text(), HasSubstr("fleet.sqlite"));
    EXPECT_TRUE(store->totals()) << "it can still be read";
  }
  EXPECT_GT(added, 0u);
  EXPECT_EQ(store->totals()->batches, added) << "nothing of the one that failed";
  ASSERT_TRUE(add(*store, added + 1));
  check_whole(*store, added + 1);
}

TEST_F(SqliteStore, AFullDiskIsExhaustedAndTheStoreGoesOnAfter) {
  const std::filesystem::path disk = folder_.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "this user may not mount a small disk: " << std::strerror(errno);
  {
    const auto store = with_importer(open_at(disk / "fleet.sqlite"));
    std::uint32_t added = 0;
    Status status;
    while (status && added < 2000) {
      status = add(*store, added + 1);
      if (status) ++added;
    }
    EXPECT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::exhausted) << status.error().text();
    EXPECT_GT(added, 0u);
    const auto totals = store->totals();
    EXPECT_TRUE(totals) << totals.error().text();
    EXPECT_EQ(totals->batches, added) << "nothing of the one that failed";
    EXPECT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
    const Status after = add(*store, added + 1);
    EXPECT_TRUE(after) << after.error().text();
    check_whole(*store, added + 1);
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace furlong::fleet
