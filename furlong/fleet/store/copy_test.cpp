#include "furlong/fleet/store/copy.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/store/conformance/conformance.h"
#include "furlong/fleet/store/memory/memory.h"
#include "furlong/fleet/store/postgres/postgres.h"
#include "furlong/fleet/store/postgres/testing.h"
#include "furlong/fleet/store/sqlite/sqlite.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

record::RaceRecord record_of(Random& random, std::uint32_t number, const std::string& machine) {
  record::RaceRecord record;
  record.id = fmt::format("01956a3c-8f00-7abc-8def-{:012x}", number);
  record.ts = fmt::format("2026-03-{:02}T12:00:{:02}Z", 1 + random.below(28), random.below(60));
  record.machine = machine;
  record.slot = fmt::format("s-{}", random.below(3));
  record.card = "NVIDIA_H200";
  record.silicon = {.vendor = "NVIDIA", .arch = "sm_90", .multiprocessors = 132, .hash = "9c1f0a5b7d3e2f46"};
  record.backend = "cuda";
  record.driver = fmt::format("58{}.1", random.below(3));
  record.program = "lottery";
  record.source = fmt::format("b3d1c{}", number / 100'000);
  record.epoch = fmt::format("{:016x}", random.below(12));
  record.unit = "MH/s";
  record.variants = {{.name = "base", .rate = 100.0, .detail = {}},
                     {.name = fmt::format("u{}", random.below(9)), .rate = 101.0, .detail = {}}};
  record.variants[1].detail.gain_pct = random.uniform();
  record.base_rate = 100.0;
  record.winner = record.variants[1].name;
  record.verdict = record::Verdict::winner;
  return record;
}

/// Fills a store by deliveries in which races replace each other and lines are refused.
Status fill(Store& store, std::uint64_t seed, int batches) {
  Random random(seed);
  std::vector<std::string> machines;
  for (std::uint8_t i = 0; i < 3; ++i) {
    Token token{.digest = blake2b_256(fmt::format("token {} {}", seed, i)),
                .label = fmt::format("rack {}", i)};
    token.issued_us = i;
    token.expires_us = 100;
    FURLONG_CHECK(store.add_token(token));
    PublicKey key;
    key.bytes.fill(static_cast<std::uint8_t>(seed * 10 + i));
    if (i == 2) break;  // a token that nobody has used
    FURLONG_TRY(const Machine machine, store.enrol(token.digest, key, 50));
    machines.push_back(machine.id);
  }
  FURLONG_CHECK(store.add_importer("logs", 5));
  machines.push_back("import:logs");
  std::uint32_t number = static_cast<std::uint32_t>(seed * 100'000);
  for (int i = 0; i < batches; ++i) {
    RecordBatch sent{
        .id = fmt::format("01956a3c-8f00-7abc-8aaa-{:012x}", seed * 1000 + static_cast<std::uint64_t>(i)),
        .machine = machines[random.below(machines.size())]};
    IncomingBatch batch{.id = sent.id, .machine = sent.machine, .signature = std::string(128, 'b')};
    for (std::uint64_t n = 1 + random.below(8); n > 0; --n) {
      if (random.below(6) == 0) {
        sent.lines.emplace_back(R"({"schema":99})");
        batch.lines.push_back({.id = "?", .race = Error(Code::incompatible, "schema 99")});
        continue;
      }
      const record::RaceRecord record = record_of(random, ++number, sent.machine);
      sent.lines.push_back(record::to_line(record));
      batch.lines.push_back({.id = record.id, .race = decode(record)});
    }
    FURLONG_TRY(batch.body, print(sent));
    batch.received_us = 1'772'000'000'000'000 + i;
    batch.agent = "0.1.0";
    FURLONG_CHECK(store.add({&batch, 1}));
  }
  FURLONG_CHECK(store.retire(machines.front()));
  return {};
}

struct Place {
  std::string kind;
  std::unique_ptr<Store> store;
};

class CopyStore : public testing::Test {
 protected:
  CopyStore() : folder_(std::move(*TemporaryFolder::make("furlong-copy"))) {}
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }
  Result<std::unique_ptr<Store>> sqlite_at(const std::string& name) const {
    return sqlite::store_kind().open("sqlite:" + file(name).string(), {});
  }
  /// A new, empty store of each kind that this machine has.
  std::vector<Place> one_of_each(const std::string& name) {
    std::vector<Place> places;
    places.push_back({"memory", open_memory_store()});
    auto sqlite = sqlite_at(name);
    EXPECT_TRUE(sqlite) << sqlite.error().text();
    if (sqlite) places.push_back({"sqlite", *std::move(sqlite)});
    if (const auto server = postgres::TestServer::shared(); server) {
      const auto url = (*server)->new_database();
      EXPECT_TRUE(url) << url.error().text();
      auto store = postgres::store_kind().open(*url, {});
      EXPECT_TRUE(store) << store.error().text();
      if (store) places.push_back({"postgres", *std::move(store)});
    } else {
      RecordProperty("without_postgres", server.error().text());
    }
    return places;
  }
  std::vector<std::string> partial_files() const {
    std::vector<std::string> names = *system_files().list(folder_.path());
    std::erase_if(names, [](const std::string& name) { return !name.contains(".partial"); });
    return names;
  }
  static void expect_equal(Store& a, Store& b, const std::string& what) {
    const auto of_a = store_content(a), of_b = store_content(b);
    ASSERT_TRUE(of_a) << of_a.error().text();
    ASSERT_TRUE(of_b) << of_b.error().text();
    EXPECT_TRUE(*of_a == *of_b) << what << ":\n" << content_difference(*of_a, *of_b);
  }

  TemporaryFolder folder_;
};

TEST_F(CopyStore, HoldsTheSameBetweenAllKinds) {
  std::vector<Place> sources = one_of_each("from.sqlite");
  for (const Place& from : sources) {
    const Status filled = fill(*from.store, 1, 40);
    ASSERT_TRUE(filled) << filled.error().text();
    ASSERT_TRUE(from.store->prune(1'772'900'000'000'000)) << "some are forgotten, and stay so";
    expect_equal(*sources.front().store, *from.store, from.kind);
    int number = 0;
    for (const Place& to : one_of_each(fmt::format("{}{}.sqlite", from.kind, ++number))) {
      const auto counts = copy_store(*from.store, *to.store);
      ASSERT_TRUE(counts) << counts.error().text();
      EXPECT_EQ(counts->machines, 3u);
      EXPECT_EQ(counts->tokens, 3u);
      EXPECT_EQ(counts->batches, from.store->totals()->batches);
      EXPECT_EQ(counts->races, from.store->totals()->races);
      expect_equal(*from.store, *to.store, from.kind + " to " + to.kind);
      const auto again = copy_store(*from.store, *to.store);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->batches + again->machines + again->tokens, 0u) << "nothing is left to do";
      EXPECT_EQ(again->there, counts->batches);
    }
  }
}

// To move a hub is to copy twice; a third time must undo nothing of what the new one has done.
TEST_F(CopyStore, TakesNothingBackFromAStoreThatHasGoneOn) {
  const auto from = open_memory_store();
  ASSERT_TRUE(fill(*from, 1, 10));
  const auto machines = *from->machines();
  const auto active = std::ranges::find_if(
      machines, [](const Machine& one) { return one.key && one.state == MachineState::active; });
  ASSERT_NE(active, machines.end());
  const auto tokens = *from->tokens();
  const auto free = std::ranges::find(tokens, std::string(), &Token::machine);
  ASSERT_NE(free, tokens.end());
  int number = 0;
  for (const Place& to : one_of_each("gone-on.sqlite")) {
    ASSERT_TRUE(copy_store(*from, *to.store));
    PublicKey key;
    key.bytes.fill(static_cast<std::uint8_t>(99 + ++number));
    ASSERT_TRUE(to.store->enrol(free->digest, key, 60));
    ASSERT_TRUE(to.store->retire(active->id));
    IncomingBatch report{.id = "later", .machine = "import:logs", .signature = {}, .body = "{}\n"};
    report.received_us = 1'773'000'000'000'000;
    report.agent = "0.9.0";
    ASSERT_TRUE(to.store->add({&report, 1}));
    const auto before = *store_content(*to.store);
    const auto counts = copy_store(*from, *to.store);
    ASSERT_TRUE(counts) << counts.error().text();
    EXPECT_EQ(content_difference(before, *store_content(*to.store)), "") << to.kind;
    EXPECT_EQ(counts->machines + counts->tokens, 0u) << to.kind;
    key.bytes.fill(7);
    EXPECT_EQ(to.store->enrol(free->digest, key, 60).error().code(), Code::denied) << to.kind << ": used up";
  }
}

TEST_F(CopyStore, AMachineThatEnrolsMeanwhileIsCopiedWithItsBatches) {
  for (const Place& from : one_of_each("from.sqlite")) {
    ASSERT_TRUE(fill(*from.store, 1, 80)) << "more than are read at a time";
    const auto to = open_memory_store();
    bool enrolled = false;
    Status later;
    const auto meanwhile = [&](const CopyCounts& counts) {
      if (counts.batches == 0 || std::exchange(enrolled, true)) return;
      later = fill(*from.store, 2, 5);
    };
    const auto counts = copy_store(*from.store, *to, meanwhile);
    ASSERT_TRUE(counts) << from.kind << ": " << counts.error().text();
    ASSERT_TRUE(enrolled && later) << from.kind;
    expect_equal(*from.store, *to, from.kind);
    EXPECT_EQ(counts->batches, from.store->totals()->batches);
  }
}

TEST_F(CopyStore, GoesOnWhereItWas) {
  const auto from = open_memory_store();
  ASSERT_TRUE(fill(*from, 1, 100));
  const auto whole = open_memory_store();
  std::uint64_t parts = 0;
  ASSERT_TRUE(copy_store(*from, *whole, [&](const CopyCounts& counts) { parts += counts.batches == 64; }));
  EXPECT_GE(parts, 1u) << "it is told, and put, part by part";
  const auto to = sqlite_at("to.sqlite");
  ASSERT_TRUE(to);
  const auto late = open_memory_store();
  ASSERT_TRUE(fill(*late, 1, 30));
  ASSERT_TRUE(copy_store(*late, **to)) << "the first thirty";
  const auto counts = copy_store(*from, **to);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->there, late->totals()->batches);
  EXPECT_EQ(counts->there + counts->batches, from->totals()->batches);
  expect_equal(*from, **to, "after two runs");
}

TEST_F(CopyStore, KeepsWhatWasThere) {
  const auto from = open_memory_store(), other = open_memory_store();
  ASSERT_TRUE(fill(*from, 1, 20));
  ASSERT_TRUE(fill(*other, 2, 20));
  const std::uint64_t races = other->totals()->races;
  ASSERT_TRUE(copy_store(*from, *other));
  EXPECT_EQ(other->totals()->races, races + from->totals()->races);
  EXPECT_EQ(other->totals()->machines, 5u) << "import:logs is one";
}

TEST_F(CopyStore, ARecordThatCannotBeReadIsNamed) {
  const auto from = open_memory_store(), to = open_memory_store();
  ASSERT_TRUE(from->add_importer("logs", 1));
  Random random(1);
  IncomingBatch batch{.id = "b", .machine = "import:logs", .body = "header\n{\"no\":\"record\"}\n"};
  batch.lines.push_back({.id = "", .race = decode(record_of(random, 1, "import:logs"))});
  ASSERT_TRUE(from->add({&batch, 1}));
  const auto copied = copy_store(*from, *to);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code(), Code::corrupt);
  EXPECT_THAT(copied.error().text(), HasSubstr("batch 1 (b), line 1"));
}

TEST_F(CopyStore, ABackupIsWholeWhileAWriterWorks) {
  const auto from = sqlite_at("fleet.sqlite");
  ASSERT_TRUE(fill(**from, 1, 30));
  std::atomic<bool> stop = false;
  Status written;
  {
    std::jthread writer([&] {
      const auto own = sqlite_at("fleet.sqlite");
      for (std::uint64_t seed = 2; own && written && !stop; ++seed) written = fill(**own, seed, 5);
    });
    for (int i = 0; i < 3; ++i) {
      const Status made = backup_store(**from, file(fmt::format("backup{}.sqlite", i)), nullptr);
      EXPECT_TRUE(made) << made.error().text();
    }
    stop = true;
  }
  ASSERT_TRUE(written) << written.error().text();
  for (int i = 0; i < 3; ++i) {
    const auto backup = sqlite_at(fmt::format("backup{}.sqlite", i));
    ASSERT_TRUE(backup) << backup.error().text();
    const auto content = store_content(**backup);
    EXPECT_TRUE(content) << content.error().text();
    EXPECT_GE((*backup)->totals()->batches, 20u);
  }
  ASSERT_TRUE(backup_store(**from, file("last.sqlite"), nullptr));
  expect_equal(**from, **sqlite_at("last.sqlite"), "nobody writes any more");
}

TEST_F(CopyStore, ABackupOfAnotherKindIsACopy) {
  const OpenFile open_file = [](const std::filesystem::path& path) {
    return sqlite::store_kind().open("sqlite:" + path.string(), {});
  };
  for (const Place& from : one_of_each("from.sqlite")) {
    ASSERT_TRUE(fill(*from.store, 1, 20));
    const std::string name = from.kind + ".backup.sqlite";
    const Status made = backup_store(*from.store, file(name), open_file);
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_TRUE(partial_files().empty()) << partial_files().front();
    expect_equal(*from.store, **sqlite_at(name), from.kind);
  }
}

TEST_F(CopyStore, ABackupReplacesNothingAndLeavesNothingHalf) {
  const auto from = open_memory_store();
  ASSERT_TRUE(fill(*from, 1, 3));
  std::ofstream(file("there")) << "bytes";
  const Status there = backup_store(*from, file("there"), nullptr);
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code(), Code::invalid);
  EXPECT_THAT(there.error().text(), HasSubstr("there"));
  EXPECT_EQ(*system_files().read(file("there")), "bytes");
  const OpenFile failing = [](const std::filesystem::path& path) -> Result<std::unique_ptr<Store>> {
    std::ofstream(path) << "half";
    return fail(Code::exhausted, "the disk is full");
  };
  const Status full = backup_store(*from, file("new"), failing);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Code::exhausted);
  EXPECT_FALSE(std::filesystem::exists(file("new")));
  EXPECT_TRUE(partial_files().empty());
}

// Two that are told the same name at the same time: one is whole under it, the other says so.
TEST_F(CopyStore, TwoBackupsOfOneNameDoNotMix) {
  const auto from = open_memory_store();
  ASSERT_TRUE(fill(*from, 1, 20));
  const auto other = open_memory_store();
  ASSERT_TRUE(fill(*other, 2, 30));
  const OpenFile open_file = [](const std::filesystem::path& path) {
    return sqlite::store_kind().open("sqlite:" + path.string(), {});
  };
  Status second;
  bool begun = false;
  const Status first = backup_store(*from, file("one.sqlite"), open_file, [&](const CopyCounts& counts) {
    if (counts.machines == 0 || std::exchange(begun, true)) return;
    second = backup_store(*other, file("one.sqlite"), open_file);
  });
  ASSERT_TRUE(begun);
  EXPECT_TRUE(second) << second.error().text();
  ASSERT_FALSE(first) << "the name is another's since";
  EXPECT_EQ(first.error().code(), Code::invalid) << first.error().text();
  expect_equal(*other, **sqlite_at("one.sqlite"), "the one that was first");
  EXPECT_TRUE(partial_files().empty());
}

}  // namespace
}  // namespace furlong::fleet
