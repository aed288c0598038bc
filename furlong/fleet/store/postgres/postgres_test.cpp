#include "furlong/fleet/store/postgres/postgres.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/fleet/store/conformance/conformance.h"
#include "furlong/fleet/store/postgres/testing.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

Result<std::unique_ptr<Store>> open(const std::string& url, const StoreKind::Options& options = {}) {
  return postgres::store_kind().open(url, options);
}

IncomingBatch batch_of(std::uint32_t number) {
  IncomingBatch batch{.id = fmt::format("batch {}", number), .machine = "import:a", .body = "header\n"};
  for (std::uint32_t i = 0; i < 10; ++i) {
    DecodedRace race;
    race.id[6] = 0x70;
    race.id[8] = 0x80;
    race.id[14] = static_cast<std::uint8_t>(number >> 4);
    race.id[15] = static_cast<std::uint8_t>(number << 4 | i);
    race.ts_us = number;
    race.subject = {.silicon = "x", .backend = "cuda", .program = "lottery", .program_class = "{}"};
    race.slot = fmt::format("slot {} {}", number, i);
    race.source = "src";
    batch.body += "line\n";
    batch.lines.push_back({.id = "", .race = std::move(race)});
  }
  return batch;
}

Status add(Store& store, std::uint32_t number) {
  const IncomingBatch batch = batch_of(number);
  FURLONG_CHECK(store.add({&batch, 1}));
  return {};
}

// One server for the tests that stop it, and so for all of this file.
class PostgresStore : public testing::Test {
 protected:
  void SetUp() override {
    auto server = postgres::TestServer::shared();
    if (!server) GTEST_SKIP() << server.error().text();
    server_ = *server;
    auto url = server_->new_database();
    ASSERT_TRUE(url) << url.error().text();
    url_ = *url;
  }
  postgres::TestServer* server_ = nullptr;
  std::string url_;
};

TEST_F(PostgresStore, AKilledServerLosesNothingThatWasAcknowledgedAndIsFoundAgain) {
  const auto store = open(url_);
  ASSERT_TRUE(store) << store.error().text();
  ASSERT_TRUE((*store)->add_importer("a", 1));
  const auto reader = open(url_);
  Random random(3);
  std::uint32_t added = 0;
  for (int round = 0; round < 3; ++round) {
    std::jthread killer([&, wait_ms = 30 + random.below(200)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      server_->kill();
    });
    Status status;
    while (status && added < 4000) {
      status = add(**store, added + 1);
      if (status) ++added;
    }
    killer.join();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::unavailable) << status.error().text();
    EXPECT_EQ((*store)->totals().error().code(), Code::unavailable) << "nobody answers";
    ASSERT_TRUE(server_->start_again());
    const auto totals = (*store)->totals();
    ASSERT_TRUE(totals) << "the next call opens it again: " << totals.error().text();
    EXPECT_GE(totals->batches, added);
    EXPECT_LE(totals->batches, added + 1) << "one may have been finished before it could be told";
    EXPECT_EQ(totals->races, totals->batches * 10) << "nothing is half there";
    added = static_cast<std::uint32_t>(totals->batches);
    const Status next = add(**store, added + 1);
    ASSERT_TRUE(next) << next.error().text();
    ++added;
    EXPECT_EQ((*reader)->totals()->batches, added) << "another one that was open goes on as well";
  }
  const auto content = store_content(**store);
  EXPECT_TRUE(content) << content.error().text();
}

TEST_F(PostgresStore, AConnectionThatWasCutIsOpenedAgainWithoutAnError) {
  const auto store = open(url_);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->add_importer("a", 1));
  ASSERT_TRUE(add(**store, 1));
  const auto cut = [&] {
    return server_->sql(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='furlong'");
  };
  ASSERT_TRUE(cut());
  const Status added = add(**store, 2);
  EXPECT_TRUE(added) << added.error().text();
  ASSERT_TRUE(cut());
  EXPECT_EQ((*store)->totals()->batches, 2u);
}

TEST_F(PostgresStore, AScanThatIsCutSaysSo) {
  const auto store = open(url_);
  ASSERT_TRUE((*store)->add_importer("a", 1));
  std::vector<IncomingBatch> batches;
  for (std::uint32_t i = 1; i <= 200; ++i) batches.push_back(batch_of(i));
  ASSERT_TRUE((*store)->add(batches));
  std::size_t seen = 0;
  Status cut;
  const Status status = (*store)->scan(1, {}, [&](const RaceRow&) {
    if (++seen == 1) server_->kill();
    return true;
  });
  ASSERT_TRUE(server_->start_again());
  // What lay in the connection already may have been all of it.
  if (status) {
    EXPECT_EQ(seen, 2000u);
  } else {
    EXPECT_EQ(status.error().code(), Code::unavailable) << status.error().text();
  }
  seen = 0;
  ASSERT_TRUE((*store)->scan(1, {}, [&](const RaceRow&) { return ++seen > 0; }));
  EXPECT_EQ(seen, 2000u);
}

TEST_F(PostgresStore, NoPasswordIsInAMessage) {
  ASSERT_TRUE(server_->sql("postgres", "DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN PASSWORD 's3cret'"));
  const std::string host = url_.substr(url_.find('?'));
  const std::string urls[] = {
      "postgresql://weak:s3cret@/nowhere" + host,
      "postgresql://weak:s3cret@" + url_.substr(url_.find("@") + 1),  // may not make a schema
      "postgresql://weak@/nowhere" + host + "&password=s3cret", "postgresql://weak:s3cret@[/nowhere",
      "postgresql://weak:s3cret%zz@/nowhere", "postgresql://weak:s3cret@127.0.0.1:1/nowhere",
      // libpq takes "s3" for a port or a host, and what follows for a database.
      "postgresql://weak:s3/cret@/nowhere" + host, "postgresql://weak:s3?cret@/nowhere" + host,
      "postgresql://weak:p@s3/cret@127.0.0.1/nowhere"};
  for (const std::string& url : urls) {
    const auto store = open(url);
    ASSERT_FALSE(store) << url;
    EXPECT_THAT(store.error().text(), Not(HasSubstr("s3"))) << url;
    EXPECT_THAT(store.error().text(), Not(HasSubstr("cret"))) << url;
    EXPECT_THAT(store.error().text(), HasSubstr("weak")) << "the store is named";
  }
  EXPECT_EQ(open(urls[0]).error().code(), Code::unavailable) << "no such database";
  EXPECT_EQ(open(urls[1]).error().code(), Code::denied) << open(urls[1]).error().text();
  EXPECT_EQ(open(urls[3]).error().code(), Code::invalid);
  EXPECT_EQ(open(urls[5]).error().code(), Code::unavailable) << "nobody listens";
}

TEST_F(PostgresStore, ANewerSchemaIsIncompatible) {
  ASSERT_TRUE(open(url_));
  const std::string database = url_.substr(url_.find("@/") + 2, url_.find('?') - url_.find("@/") - 2);
  ASSERT_TRUE(server_->sql(database, "UPDATE furlong.schema_version SET version=9"));
  for (const bool read_only : {false, true}) {
    const auto store = open(url_, {.read_only = read_only});
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code(), Code::incompatible);
    EXPECT_THAT(store.error().text(), HasSubstr("found schema version 9, expected"));
  }
  ASSERT_TRUE(
      server_->sql(database, "UPDATE furlong.schema_version SET version=2; DROP TABLE furlong.word CASCADE"));
  const auto store = open(url_);
  ASSERT_TRUE(store) << "its version is this one's";
  const auto words = (*store)->words();
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().code(), Code::corrupt) << words.error().text();
}

TEST_F(PostgresStore, AnotherEncodingIsIncompatible) {
  const auto url = server_->new_database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  ASSERT_TRUE(url) << url.error().text();
  const auto store = open(*url);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), Code::incompatible);
  EXPECT_THAT(store.error().text(), HasSubstr("LATIN1"));
}

TEST_F(PostgresStore, ItsTablesLieInASchemaOfTheirOwn) {
  const auto store = open(url_);
  ASSERT_TRUE(store);
  EXPECT_THAT((*store)->totals()->version, testing::StartsWith("PostgreSQL "));
  const std::string database = url_.substr(url_.find("@/") + 2, url_.find('?') - url_.find("@/") - 2);
  EXPECT_TRUE(server_->sql(database, "SELECT count(*) FROM furlong.race"));
  EXPECT_FALSE(server_->sql(database, "SELECT count(*) FROM race"));
}

TEST_F(PostgresStore, OpeningWaitsForNobodyWhoHoldsTheSchema) {
  ASSERT_TRUE(open(url_));
  const std::string database = url_.substr(url_.find("@/") + 2, url_.find('?') - url_.find("@/") - 2);
  // As one that opens a store to bring it up to date, and takes long.
  std::jthread holder([&] {
    static_cast<void>(
        server_->sql(database, "BEGIN; SELECT pg_advisory_xact_lock(1179415412); SELECT pg_sleep(100)"));
  });
  const std::string held = "FROM pg_locks WHERE locktype='advisory' AND granted";
  while (!server_->sql(database, "SELECT 1/count(*) " + held)) std::this_thread::yield();
  for (const bool create : {true, false}) {
    const auto store = open(url_, {.create = create});
    EXPECT_TRUE(store) << store.error().text();
  }
  EXPECT_TRUE(server_->sql(database, "SELECT 1/count(*) " + held)) << "it was held all the time";
  ASSERT_TRUE(server_->sql(database, "SELECT pg_terminate_backend(pid) " + held));
}

TEST_F(PostgresStore, SeveralMayOpenANewStoreAtOnce) {
  std::vector<Status> ends(4);
  {
    std::vector<std::jthread> threads;
    for (Status& end : ends)
      threads.emplace_back([&] {
        const auto store = open(url_);
        if (!store) end = Error(store.error());
        if (store) end = (*store)->add_importer("a", 1);
      });
  }
  for (const Status& end : ends) EXPECT_TRUE(end) << end.error().text();
  EXPECT_EQ((*open(url_))->totals()->machines, 1u);
}

}  // namespace
}  // namespace furlong::fleet
