#include "furlong/fleet/agent/spool.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/fleet/agent/ingest.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

namespace fs = std::filesystem;

const fs::path file = "/data/records-s.jsonl";
const RecordOrigin origin{.machine = "0123456789abcdef", .slot = "slot", .agent = "1"};

std::string worker_line(const std::string& source) {
  return R"({"schema":1,"ts":"2026-03-01T12:00:00Z","card":"C","backend":"sim","program":"lottery","source":")" +
         source + R"(","variants":{"base":1.0},"verdict":"none","newer":[1]})";
}

std::string source_of(const std::string& line) { return record::parse_record(line, "line")->source; }

struct Place {
  TemporaryFolder folder = std::move(*TemporaryFolder::make("spool"));
  FakeClock clock;
  FakeFiles files;
  Random random{1};
  std::unique_ptr<Spool> spool;
  SpoolLimits limits;
  int batches = 0;

  Place() { open(); }
  void open() {
    spool.reset();
    auto opened = Spool::open(folder.path() / "spool.sqlite", limits);
    ASSERT_TRUE(opened) << opened.error().text();
    spool = std::move(*opened);
  }
  Ingested take() {
    auto done = ingest(files, *spool, file, origin, clock, random);
    EXPECT_TRUE(done) << done.error().text();
    return done ? *done : Ingested{};
  }
  void append(const std::string& text) { put(files.read(file).value_or("") + text); }
  void put(const std::string& text) { EXPECT_TRUE(files.write_atomic(file, text)); }
  std::optional<RecordBatch> batch(std::size_t most = 100) {
    auto next = spool->next_batch(most, 1 << 20, origin.machine,
                                  [&] { return "batch-" + std::to_string(++batches); });
    EXPECT_TRUE(next) << next.error().text();
    return next ? *next : std::nullopt;
  }
};

BatchReply accept_all(const RecordBatch& batch) {
  BatchReply reply;
  for (const auto& line : batch.lines) reply.accepted.push_back(record::parse_record(line, "line")->id);
  return reply;
}

TEST(Ingest, FillsInWhatTheWorkerCannotKnow) {
  Place place;
  place.append(worker_line("a") + "\n");
  EXPECT_EQ(place.take().records, 1);
  EXPECT_EQ(place.take().records, 0);
  const auto batch = place.batch();
  ASSERT_TRUE(batch);
  const auto record = record::parse_record(batch->lines.at(0), "line");
  ASSERT_TRUE(record);
  EXPECT_TRUE(record::is_record_id(record->id));
  EXPECT_EQ(record->machine, origin.machine);
  EXPECT_EQ(record->slot, "slot");
  EXPECT_EQ(record->agent, "1");
  EXPECT_THAT(batch->lines[0], testing::HasSubstr("\"newer\":[1]"));
}

TEST(Ingest, ATornLineWaitsAndIsSkippedOnceItStaysTorn) {
  Place place;
  const std::string line = worker_line("a");
  place.append(worker_line("0") + "\n" + line.substr(0, 40));
  EXPECT_EQ(place.take().records, 1);
  EXPECT_EQ(place.take().skipped, 0);
  place.put(worker_line("0") + "\n" + line);  // whole but for its newline
  EXPECT_EQ(place.take().records, 1);
  place.append("\n" + line.substr(0, 40) + "\n" + worker_line("b") + "\n");
  const Ingested last = place.take();
  EXPECT_EQ(last.records, 1);
  EXPECT_EQ(last.skipped, 1);
  ASSERT_EQ(last.notes.size(), 1u);
  EXPECT_EQ(place.spool->counts()->skipped_lines, 1);
}

TEST(Ingest, AnotherFileIsReadFromItsBeginningAndKnownLinesAreKnown) {
  Place place;
  place.put(worker_line("a") + "\n" + worker_line("b") + "\n");
  EXPECT_EQ(place.take().records, 2);
  place.put(worker_line("b") + "\n");  // shorter
  EXPECT_EQ(place.take().records, 0);
  place.put(worker_line("c") + "\n" + worker_line("a") + "\n" + worker_line("d") + "\n");  // other bytes
  const Ingested replaced = place.take();
  EXPECT_EQ(replaced.records, 2);
  EXPECT_THAT(replaced.notes.at(0), testing::HasSubstr("another file"));
}

TEST(Ingest, AFileThatWasEmptiedIsAnotherFileOnce) {
  Place place;
  place.put(worker_line("a") + "\n");
  EXPECT_EQ(place.take().records, 1);
  place.put("");
  EXPECT_EQ(place.take().notes.size(), 1u);
  EXPECT_EQ(place.take().notes.size(), 0u);
  place.put(worker_line("b") + "\n");
  EXPECT_EQ(place.take().records, 1);
}

TEST(Ingest, AFileOfTheSameSizeIsNotRead) {
  Place place;
  Files& real = system_files();
  const fs::path there = place.folder.path() / "records-s.jsonl";
  EXPECT_TRUE(real.write_atomic(there, worker_line("a") + "\n"));
  EXPECT_EQ(ingest(real, *place.spool, there, origin, place.clock, place.random)->records, 1);
  place.files.fault = [](std::string_view, const fs::path&) -> Status {
    return fail(Code::internal, "it was read");
  };
  EXPECT_TRUE(ingest(place.files, *place.spool, there, origin, place.clock, place.random));
}

TEST(Ingest, AFullSpoolLeavesTheRestInTheFile) {
  Place place;
  place.limits.pending_bytes = 500;
  place.open();
  for (const char* source : {"a", "b", "c", "d"}) place.append(worker_line(source) + "\n");
  const Ingested first = place.take();
  EXPECT_TRUE(first.full);
  EXPECT_LT(first.records, 4);
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    if (const auto batch = place.batch()) {
      for (const auto& line : batch->lines) EXPECT_TRUE(seen.insert(source_of(line)).second);
      EXPECT_TRUE(place.spool->settle(*batch, accept_all(*batch), "now"));
    }
    place.take();
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST(Ingest, AFullDiskChangesNothing) {
  Place place;
  std::string text;
  for (int i = 0; i < 400; ++i) text += worker_line("source-" + std::to_string(i)) + "\n";
  place.put(text);
  place.limits.pages = 24;
  place.open();
  const auto done = ingest(place.files, *place.spool, file, origin, place.clock, place.random);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::exhausted);
  EXPECT_EQ(place.spool->counts()->pending, 0);
  place.limits.pages = 0;
  place.open();
  EXPECT_EQ(place.take().records, 400);
}

TEST(Spool, ABatchKeepsItsBytesUntilItIsSettled) {
  Place place;
  place.append(worker_line("a") + "\n" + worker_line("b") + "\n");
  place.take();
  const auto first = place.batch(1);
  place.append(worker_line("c") + "\n");
  place.take();
  place.open();
  EXPECT_EQ(place.batch(), first);
  BatchReply foreign{.accepted = {"somebody else's"}};
  const auto settled = place.spool->settle(*first, foreign, "now");
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->left, 1);
  EXPECT_EQ(settled->foreign, 1);
  const auto next = place.batch();
  ASSERT_TRUE(next);
  EXPECT_NE(next->id, first->id);
  EXPECT_EQ(next->lines.size(), 3u);
}

TEST(Spool, RefusedAreKeptApart) {
  Place place;
  place.append(worker_line("a") + "\n");
  place.take();
  const auto batch = place.batch();
  const std::string id = accept_all(*batch).accepted[0];
  EXPECT_TRUE(place.spool->settle(*batch, {.refused = {{.id = id, .why = "no"}}}, "now"));
  EXPECT_FALSE(place.batch());
  const auto refused = place.spool->refused(10);
  ASSERT_EQ(refused->size(), 1u);
  EXPECT_EQ(refused->at(0).why, "no");
  EXPECT_EQ(place.spool->counts()->refused, 1);
}

TEST(Spool, FindsAreUniqueAndProgressStays) {
  Place place;
  const Find find{.pair = {.epoch = "e", .day = 2},
                  .slot = "s",
                  .nonce = ~0ull,
                  .hash = 3,
                  .device = "cuda:0",
                  .at = "now"};
  EXPECT_TRUE(*place.spool->add_find(find));
  EXPECT_FALSE(*place.spool->add_find(find));
  Find elsewhere = find;
  elsewhere.slot = "t";
  EXPECT_FALSE(*place.spool->add_find(elsewhere)) << "one nonce is one find, whoever has it";
  EXPECT_EQ((*place.spool->waiting_find(0, 9))->find, find);
  EXPECT_EQ(place.spool->counts()->finds_waiting, 1);
  EXPECT_TRUE(place.spool->find_taken(find));
  EXPECT_TRUE(place.spool->find_taken(find));
  EXPECT_FALSE(*place.spool->waiting_find(0, 9));
  EXPECT_EQ(place.spool->counts()->finds_waiting, 0);
  EXPECT_TRUE(place.spool->set_progress(find.pair, "s", {.first = 1ull << 63, .next = ~0ull}));
  place.open();
  EXPECT_EQ(place.spool->progress(find.pair, "s")->value(),
            (Spool::Progress{.first = 1ull << 63, .next = ~0ull}));
  EXPECT_FALSE(*place.spool->progress(find.pair, "t"));
}

Find numbered(std::uint64_t nonce) {
  return {.pair = {.epoch = "e", .day = 1}, .slot = "s", .nonce = nonce, .device = "d", .at = "now"};
}

TEST(Spool, FindsThatAreRefusedComeAfterTheOthers) {
  Place place;
  for (const std::uint64_t nonce : {1, 2}) EXPECT_TRUE(*place.spool->add_find(numbered(nonce)));
  EXPECT_TRUE(place.spool->find_refused(numbered(1)));
  EXPECT_EQ((*place.spool->waiting_find(0, 9))->find.nonce, 2u);
  EXPECT_TRUE(place.spool->find_taken(numbered(2)));
  EXPECT_FALSE(*place.spool->waiting_find(0, 0));
  EXPECT_EQ((*place.spool->waiting_find(0, 9))->tries, 1);
  EXPECT_TRUE(place.spool->forget_tries());
  EXPECT_EQ((*place.spool->waiting_find(0, 0))->find.nonce, 1u);
}

TEST(Spool, OldFindsGoButNoneThatWaits) {
  Place place;
  place.limits.finds_kept = 3;
  place.open();
  for (std::uint64_t nonce = 0; nonce < 10; ++nonce) {
    EXPECT_TRUE(*place.spool->add_find(numbered(nonce)));
    if (nonce % 2 == 0) {
      EXPECT_TRUE(place.spool->find_taken(numbered(nonce)));
    }
  }
  EXPECT_EQ(place.spool->counts()->finds, 10) << "ever";
  EXPECT_EQ(place.spool->counts()->finds_waiting, 5);
  EXPECT_TRUE(*place.spool->add_find(numbered(0))) << "forgotten: it was taken long ago";
  EXPECT_FALSE(*place.spool->add_find(numbered(1)));
  place.limits.finds_wait = false;
  place.open();
  EXPECT_TRUE(*place.spool->add_find(numbered(100)));
  EXPECT_EQ(place.spool->counts()->finds_waiting, 3) << "the newest";
}

TEST(Spool, TheFindsOfAnEarlierSpoolAreKept) {
  Place place;
  place.spool.reset();
  const fs::path old = place.folder.path() / "old.sqlite";
  {
    auto database = Database::open(old);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->migrate({R"(
      CREATE TABLE find (number INTEGER PRIMARY KEY AUTOINCREMENT, epoch TEXT NOT NULL, day INTEGER NOT NULL,
                         slot TEXT NOT NULL, nonce TEXT NOT NULL, hash TEXT NOT NULL, device TEXT NOT NULL,
                         at TEXT NOT NULL, taken INTEGER NOT NULL DEFAULT 0,
                         UNIQUE (epoch, day, slot, nonce)) STRICT;
      CREATE TABLE count (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
      INSERT INTO find (epoch, day, slot, nonce, hash, device, at, taken) VALUES
        ('e', 1, 's', '0000000000000001', '0000000000000000', 'd', 'now', 0),
        ('e', 1, 't', '0000000000000001', '0000000000000000', 'd', 'now', 1),
        ('e', 1, 's', '0000000000000002', '0000000000000000', 'd', 'now', 0);)"}));
  }
  const auto spool = Spool::open(old);
  ASSERT_TRUE(spool) << spool.error().text();
  const auto waiting = (*spool)->waiting_find(0, 0);
  ASSERT_TRUE(waiting && *waiting);
  EXPECT_EQ((*waiting)->find.nonce, 2u) << "the other was taken, of one of its two devices";
}

TEST(Spool, RecordsFollowTheMachinesKey) {
  Place place;
  place.append(worker_line("a") + "\n" + worker_line("b") + "\n");
  place.take();
  EXPECT_TRUE(adopt_records(*place.spool, origin.machine));
  const auto before = place.batch(1);
  EXPECT_TRUE(adopt_records(*place.spool, origin.machine));
  EXPECT_EQ(place.batch(1), before) << "the same key changes nothing";
  EXPECT_TRUE(adopt_records(*place.spool, "fedcba9876543210"));
  const auto after = place.batch();
  ASSERT_TRUE(after);
  EXPECT_NE(after->id, before->id) << "other bytes are another batch";
  ASSERT_EQ(after->lines.size(), 2u);
  const auto record = record::parse_record(after->lines[0], "line");
  EXPECT_EQ(record->machine, "fedcba9876543210");
  EXPECT_EQ(record->id, record::parse_record(before->lines[0], "line")->id);
}

/// A hub that loses replies, and a process that is killed between any two steps: what was created was stored
/// once.
TEST(Spool, WhateverIsKilledEachRecordIsDeliveredOnce) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Place place;
    Random chance(seed, "kills");
    std::set<std::string> created;
    std::map<std::string, std::string> stored;  // id → source, at the hub
    int made = 0;
    const auto deliver = [&](bool lossless) {
      const auto batch = place.batch(1 + chance.below(5));
      if (!batch) return false;
      BatchReply reply;
      for (const auto& line : batch->lines) {
        const auto record = *record::parse_record(line, "line");
        const bool fresh = stored.emplace(record.id, record.source).second;
        (fresh ? reply.accepted : reply.duplicate).push_back(record.id);
      }
      if (lossless || chance.below(3) != 0) {
        EXPECT_TRUE(place.spool->settle(*batch, reply, "now"));
      }
      return true;
    };
    for (int step = 0; step < 120; ++step) {
      switch (chance.below(5)) {
        case 0: {
          const std::string source = "source-" + std::to_string(++made);
          // A crash of the worker may leave half a line before; its next append ends that first.
          std::string text = place.files.read(file).value_or("");
          if (!text.empty() && text.back() != '\n') text += "\n";
          if (chance.below(4) == 0) text += worker_line("torn").substr(0, 30) + "\n";
          text += worker_line(source);
          created.insert(source);
          place.put(text + (chance.below(3) == 0 ? "" : "\n"));
          break;
        }
        case 1: {
          const bool fails = chance.below(3) == 0;
          place.files.fault = [fails](std::string_view, const fs::path&) -> Status {
            return fails ? Status(fail(Code::internal, "the disk sulks")) : Status();
          };
          static_cast<void>(
              ingest(place.files, *place.spool, file, origin, place.clock, place.random).has_value());
          place.files.fault = {};
          break;
        }
        case 2:
          place.open();  // killed
          break;
        default:
          deliver(false);
      }
    }
    place.take();
    while (deliver(true)) {
    }
    std::multiset<std::string> sources;
    for (const auto& [id, source] : stored) sources.insert(source);
    EXPECT_EQ(sources, std::multiset<std::string>(created.begin(), created.end())) << "seed " << seed;
  }
}

}  // namespace
}  // namespace furlong::fleet
