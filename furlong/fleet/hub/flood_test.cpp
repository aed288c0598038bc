// Whatever is sent, memory stays bounded and the others are served: the floods that a hub meets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "furlong/fleet/agent/delivery.h"
#include "furlong/fleet/hub/internal/http/testing.h"
#include "furlong/fleet/hub/internal/testing.h"
#include "furlong/fleet/store/sqlite/sqlite.h"

namespace furlong::fleet {
namespace {

using hub_testing::error_of;
using hub_testing::header;
using hub_testing::Sender;
using hub_testing::start_us;
using hub_testing::TestHub;
using ::testing::HasSubstr;

constexpr std::int64_t second_ns = 1'000'000'000;

std::string epoch(std::uint64_t number) { return fmt::format("{:016x}", number); }

int retry_after(const ServerReply& reply) {
  const std::string text = header(reply, "Retry-After");
  return text.empty() ? 0 : std::stoi(text);
}

TEST(Flood, OneMachineWithAThousandIdentities) {
  TestHub fleet;
  Sender good(1);
  fleet.know(good);
  ASSERT_EQ(fleet.send(good.request(good.body({json_line(good.record())}))).status, 200);
  int denied = 0, busy = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Sender fake(1000 + i);
    const int status = fleet.send(fake.request(fake.body({}), "198.51.100.9")).status;
    denied += status == 403;
    busy += status == 429;
  }
  EXPECT_EQ(denied + busy, 1000);
  EXPECT_EQ(denied, 60) << "then the address is turned away before its bodies are read";
  Sender fake(5000);
  const auto guarded = fleet.hub().guard(fake.request("", "198.51.100.9"));
  ASSERT_TRUE(guarded);
  EXPECT_EQ(guarded->status, 429);
  EXPECT_EQ(retry_after(*guarded), 1);
  EXPECT_EQ(fleet.store()->totals()->machines, 1u);
  EXPECT_EQ(fleet.send(good.request(good.body({json_line(good.record(epoch(2)))}), "198.51.100.9")).status,
            200)
      << "a machine that has proved itself is not shut out by its neighbour";
  EXPECT_LE(fleet.said.size(), 10u) << "an address that makes up names fills no log";
}

TEST(Flood, AThousandMachinesBehindOneAddress) {
  TestHub fleet;
  std::vector<Sender> senders;
  for (std::uint64_t i = 0; i < 1000; ++i) senders.emplace_back(i);
  for (std::uint64_t i = 0; i < senders.size(); ++i)
    ASSERT_EQ(fleet.send(senders[i].enrolment(fleet.token(fmt::format("token {}", i)))).status, 200)
        << "enrolments that go well are not counted";
  for (Sender& sender : senders)
    ASSERT_EQ(fleet.send(sender.request(sender.body({json_line(sender.record())}))).status, 200);
  EXPECT_EQ(fleet.store()->totals()->races, 1000u);
}

TEST(Flood, GuessedTokens) {
  TestHub fleet;
  const std::string token = fleet.token("the right one");
  int denied = 0;
  for (std::uint64_t i = 0; i < 200; ++i)
    denied += fleet.send(Sender(i).enrolment(fmt::format("guess {}", i), "198.51.100.9")).status == 403;
  EXPECT_EQ(denied, 30);
  EXPECT_EQ(fleet.send(Sender(999).enrolment(token, "198.51.100.9")).status, 429);
  EXPECT_EQ(fleet.send(Sender(999).enrolment(token, "198.51.100.10")).status, 200) << "another address";
  fleet.clock.advance_ns(4 * second_ns);
  EXPECT_EQ(fleet.send(Sender(998).enrolment("guess", "198.51.100.9")).status, 403) << "30 a minute";
}

TEST(Flood, AnIpv6NetworkIsOneClient) {
  TestHub fleet;
  int denied = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Sender fake(i);
    denied += fleet.send(fake.request(fake.body({}), fmt::format("2001:db8:1:2::{:x}", i + 1))).status == 403;
  }
  EXPECT_EQ(denied, 60);
}

TEST(Flood, BehindAProxyTheClientCounts) {
  TestHub fleet;
  fleet.options.behind_proxy = true;
  const auto send = [&](std::uint64_t number, const std::string& forwarded) {
    Sender fake(number);
    ServerRequest request = fake.request(fake.body({}), "127.0.0.1");
    request.headers.emplace_back("x-forwarded-for", forwarded);
    return fleet.send(request).status;
  };
  for (std::uint64_t i = 0; i < 200; ++i) send(i, fmt::format("192.0.2.{}, 198.51.100.9", i));
  EXPECT_EQ(send(300, "192.0.2.1, 198.51.100.9"), 429) << "only what the proxy added is believed";
  EXPECT_EQ(send(301, "198.51.100.9, 198.51.100.10"), 403);
}

TEST(Flood, OneMachineThatSendsWithoutEnd) {
  TestHub fleet;
  Sender loud(1), quiet(2);
  fleet.know(loud);
  fleet.know(quiet);
  int taken = 0;
  ServerReply last;
  for (std::uint64_t i = 0; i < 300; ++i) {
    last = fleet.send(loud.request(loud.body({json_line(loud.record(epoch(i)))})));
    taken += last.status == 200;
  }
  EXPECT_EQ(taken, 120);
  EXPECT_EQ(last.status, 429);
  EXPECT_EQ(retry_after(last), 1);
  EXPECT_TRUE(fleet.hub().guard(loud.request(""))) << "before the body is read";
  EXPECT_EQ(fleet.send(quiet.request(quiet.body({}))).status, 200);
  fleet.clock.advance_ns(second_ns);
  EXPECT_EQ(fleet.send(loud.request(loud.body({}))).status, 200) << "120 a minute are two a second";
}

TEST(Flood, NobodyElseUsesUpAMachinesShare) {
  TestHub fleet;
  Sender good(1), thief(2);
  fleet.know(good);
  for (int i = 0; i < 300; ++i) {
    ServerRequest forged = thief.request(good.body({}), "198.51.100.9");
    forged.headers[1].second = good.id();
    fleet.send(forged);
  }
  EXPECT_EQ(fleet.send(good.request(good.body({}), "198.51.100.9")).status, 429)
      << "from the thief's own address its forgeries count for this name";
  EXPECT_EQ(fleet.send(good.request(good.body({}))).status, 200);
}

/// Behind one address a machine that proved itself is not shut out by a neighbour that sends in its name, as
/// long as the hub can afford to look.
TEST(Flood, ANeighbourDoesNotShutOutAMachineThatProvedItself) {
  TestHub fleet;
  Sender good(1), thief(2);
  fleet.know(good);
  const std::string home = "198.51.100.9";
  ASSERT_EQ(fleet.send(good.request(good.body({}), home)).status, 200);
  const auto forge = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ServerRequest forged = thief.request("", home);
      forged.headers[1].second = good.id();
      fleet.send(forged);
    }
  };
  forge(300);
  EXPECT_EQ(fleet.send(good.request(good.body({}), home)).status, 200);
  forge(1000);
  EXPECT_EQ(fleet.send(good.request(good.body({}), home)).status, 429) << "and not without end";
}

/// One that came by a machine's batch sends it again and again: the machine goes on, and says itself what it
/// follows.
TEST(Flood, BatchesThatSomebodySendsAgain) {
  TestHub fleet;
  Sender box(1);
  fleet.know(box);
  const std::string stolen = box.body({json_line(box.record(epoch(1)))}, "0.1.0", "16");
  ASSERT_EQ(fleet.send(box.request(stolen)).status, 200);
  fleet.clock.advance_ns(60 * second_ns);
  ASSERT_EQ(fleet.send(box.request(box.body({}, "0.2.0", "17"))).status, 200);
  const std::int64_t seen_us = (**fleet.store()->machine(box.id())).seen_us;
  fleet.clock.advance_ns(60 * second_ns);
  int busy = 0;
  for (int i = 0; i < 1000; ++i) busy += fleet.send(box.request(stolen, "198.51.100.9")).status == 429;
  EXPECT_GE(busy, 800) << "the sender's address pays";
  const Machine machine = **fleet.store()->machine(box.id());
  EXPECT_EQ(machine.seen_us, seen_us) << "a machine that is gone does not look alive";
  EXPECT_EQ(machine.agent, "0.2.0");
  EXPECT_EQ(machine.manifest, "17");
  for (std::uint64_t i = 0; i < 100; ++i)
    ASSERT_EQ(fleet.send(box.request(box.body({json_line(box.record(epoch(10 + i)))}))).status, 200) << i;
}

TEST(Flood, ReorderedBatchesSetNothingBack) {
  TestHub fleet;
  Sender box(1);
  fleet.know(box);
  const std::string early = box.body({json_line(box.record(epoch(1)))}, "0.1.0", "16", true);
  const std::string late = box.body({json_line(box.record(epoch(2)))}, "0.2.0", "17");
  ASSERT_EQ(fleet.send(box.request(late)).status, 200);
  ASSERT_EQ(fleet.send(box.request(early)).status, 200);
  const Machine machine = **fleet.store()->machine(box.id());
  EXPECT_EQ(machine.accepted, 2u);
  EXPECT_EQ(machine.agent, "0.2.0");
  EXPECT_EQ(machine.manifest, "17");
  EXPECT_FALSE(machine.says_canary);
}

// ---- what is held up ----

/// Holds those that call one thing of the store, until it is opened.
class Held {
 public:
  Held(TestHub& fleet, std::string call) : fleet_(fleet), call_(std::move(call)) {
    fleet.faults->set([this](std::string_view name) -> Status {
      if (name != call_) return {};
      std::unique_lock lock(mutex_);
      ++inside_;
      moved_.notify_all();
      moved_.wait(lock, [&] { return open_; });
      return {};
    });
  }
  ~Held() {
    release();
    fleet_.faults->set({});
  }
  void wait_inside(int count) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return inside_ >= count; });
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    moved_.notify_all();
  }

 private:
  TestHub& fleet_;
  const std::string call_;
  std::mutex mutex_;
  std::condition_variable moved_;
  int inside_ = 0;
  bool open_ = false;
};

/// Anybody may ask for pages, and one may walk through all races.
TEST(Flood, CostlyPagesLeaveTheOthersTheirThreads) {
  TestHub fleet;
  Sender box(1);
  fleet.know(box);
  fleet.options.http.port = 0;
  const std::string token = fleet.token("good");
  const auto hub = *Hub::start(fleet.options, fleet.surroundings());
  std::jthread running([&](const std::stop_token& stop) { EXPECT_TRUE(hub->run(stop)); });
  Held held(fleet, "races");
  std::vector<RawClient> readers;
  for (int i = 0; i < 200; ++i) {
    readers.emplace_back(hub->port());
    ASSERT_TRUE(readers.back().send(furlong::fleet::get("/v1/races?since=2999-01-01T00:00:00Z")));
  }
  held.wait_inside(page_threads);
  const auto status = [&](const std::string& request) {
    return RawClient(hub->port()).exchange(request).status;
  };
  const auto wire = [](const ServerRequest& request) {
    std::string headers;
    for (const auto& [name, value] : request.headers) headers += fmt::format("{}: {}\r\n", name, value);
    return furlong::fleet::post(request.path, request.body, headers);
  };
  EXPECT_EQ(status(wire(box.request(box.body({json_line(box.record())})))), 200);
  EXPECT_EQ(status(wire(Sender(9).enrolment(token))), 200);
  EXPECT_EQ(status(furlong::fleet::get("/healthz")), 200);
  EXPECT_EQ(status(furlong::fleet::get("/metrics")), 200);
  EXPECT_EQ(status(furlong::fleet::get("/v1/manifest")), 404) << "there is none, and it says so";
  const RawReply beyond = RawClient(hub->port()).exchange(furlong::fleet::get("/v1/races"));
  EXPECT_EQ(beyond.status, 503);
  EXPECT_EQ(beyond.header("retry-after"), "1");
  held.release();
  int served = 0, busy = 0;
  for (RawClient& reader : readers) {
    const int got = reader.reply().status;
    served += got == 200;
    busy += got == 503;
  }
  EXPECT_GE(served, page_threads) << "and whoever came when they were done";
  EXPECT_EQ(served + busy, 200);
  EXPECT_EQ(status(furlong::fleet::get("/v1/races")), 200);
}

/// Short lines cost more than their bytes say.
TEST(Flood, VeryManyTinyLinesAreCountedAsWhatTheyCost) {
  TestHub fleet;
  fleet.options.most_batch_memory = 64u << 20;
  std::vector<Sender> senders;
  for (std::uint64_t i = 0; i < 20; ++i) senders.emplace_back(i);
  for (const Sender& sender : senders) fleet.know(sender);
  fleet.hub();
  Held held(fleet, "add");
  std::atomic<int> taken = 0, busy = 0;
  std::vector<std::jthread> threads;
  for (Sender& sender : senders)
    threads.emplace_back([&] {
      const int status =
          fleet.send(sender.request(sender.body(std::vector<std::string>(10'000, "{}")))).status;
      taken += status == 200;
      busy += status == 429;
    });
  // Of 10 MB each, six find room; whoever finds none is told at once.
  EXPECT_TRUE(comes_true([&] { return busy >= 14; })) << busy;
  EXPECT_THAT(fleet.send(hub_testing::get("/metrics")).body, HasSubstr("furlong_hub_batches_in_hand 6\n"));
  held.release();
  threads.clear();
  EXPECT_EQ(taken, 6);
}

/// The hub's own forgetting may take minutes: batches, enrolments and the manifest do not wait for it.
TEST(Flood, ForgettingHoldsUpNothing) {
  TestHub fleet;
  Sender box(1);
  fleet.know(box);
  fleet.options.keep_days = 1;
  const std::string token = fleet.token("good");
  fleet.hub();
  Held held(fleet, "prune");
  std::jthread forgetting([&] { fleet.hub().pruner().step(); });
  held.wait_inside(1);
  EXPECT_EQ(fleet.send(box.request(box.body({json_line(box.record())}))).status, 200);
  EXPECT_EQ(fleet.send(Sender(9).enrolment(token)).status, 200);
  fleet.hub().tick();
  EXPECT_EQ(fleet.all_said().find("not forgotten"), std::string::npos);
  held.release();
}

// ---- what is new ----

TEST(Flood, AMachineWithEndlessPrograms) {
  TestHub fleet;
  fleet.options.kinds.programs = 10;
  fleet.options.kinds.names = 50;
  fleet.options.batches_per_minute = 1e6;
  Sender loud(1), quiet(2);
  fleet.know(loud);
  fleet.know(quiet);
  const auto with = [](Sender& sender, const char* key, const Json& value, int number) {
    Json record = sender.record(epoch(static_cast<std::uint64_t>(number)));
    record[key] = value;
    return json_line(record);
  };
  std::vector<std::string> lines;
  for (int i = 0; i < 100; ++i) lines.push_back(with(loud, "program", fmt::format("p{}", i), i));
  BatchReply reply = *parse_batch_reply(fleet.send(loud.request(loud.body(lines))).body);
  EXPECT_EQ(reply.accepted.size(), 10u);
  ASSERT_EQ(reply.refused.size(), 90u);
  EXPECT_THAT(reply.refused[0].why, HasSubstr("too many programs: a machine may bring 10"));
  EXPECT_EQ(fleet.store()->totals()->subjects, 10u);
  // What is known goes on; and another machine has its own allowance.
  reply = *parse_batch_reply(fleet.send(loud.request(loud.body({with(loud, "program", "p3", 200)}))).body);
  EXPECT_EQ(reply.accepted.size(), 1u);
  reply = *parse_batch_reply(fleet.send(quiet.request(quiet.body({with(quiet, "program", "p99", 1)}))).body);
  EXPECT_EQ(reply.accepted.size(), 1u);
  // Names of cards, slots, drivers and variants likewise.
  lines.clear();
  for (int i = 0; i < 100; ++i) {
    Json record = loud.record(epoch(static_cast<std::uint64_t>(300 + i)));
    record["program"] = "p3";
    record["card"] = fmt::format("card {}", i);
    lines.push_back(json_line(record));
  }
  reply = *parse_batch_reply(fleet.send(loud.request(loud.body(lines))).body);
  EXPECT_LE(reply.accepted.size(), 50u);
  EXPECT_GE(reply.accepted.size(), 40u);
  ASSERT_FALSE(reply.refused.empty());
  EXPECT_THAT(reply.refused.back().why, HasSubstr("too many names: a machine may bring 50"));
  EXPECT_LE(fleet.store()->words()->size(), 70u);
  fleet.clock.advance_ns(5 * 86'400 * second_ns);
  reply = *parse_batch_reply(fleet.send(loud.request(loud.body({with(loud, "program", "q", 500)}))).body);
  EXPECT_EQ(reply.accepted.size(), 1u) << "as many again in five days";
}

TEST(Flood, WhatTheStoreKnowsIsNotNewAfterARestart) {
  TestHub fleet;
  fleet.options.kinds.programs = 1;
  Sender box(1);
  fleet.know(box);
  ASSERT_EQ(parse_batch_reply(fleet.send(box.request(box.body({json_line(box.record(epoch(1)))}))).body)
                ->accepted.size(),
            1u);
  fleet.core.reset();
  Json other = box.record(epoch(2));
  other["program"] = "new";
  const ServerReply reply =
      fleet.send(box.request(box.body({json_line(box.record(epoch(3))), json_line(other)})));
  EXPECT_EQ(parse_batch_reply(reply.body)->accepted.size(), 2u) << reply.body;
}

/// Who is slow and honest comes to an end: the hub waits as long for a body as an agent sends at it.
TEST(Flood, ASlowAgentHasItsTime) { EXPECT_GE(HttpServerOptions().body_timeout_s, records_timeout_s); }

TEST(Flood, MemoryOfTheLimitsIsBounded) {
  TestHub fleet;
  fleet.options.batches_per_minute = 1e9;
  Sender fake(1);
  for (int i = 0; i < 25'000; ++i) {
    ServerRequest request = fake.request("", fmt::format("10.{}.{}.{}", i >> 16, i >> 8 & 255, i & 255));
    request.headers[1].second = fmt::format("{:016x}", i);
    fleet.send(request);
  }
  const ServerReply metrics = fleet.send(hub_testing::get("/metrics"));
  for (const char* limit : {"addresses", "senders"})
    EXPECT_THAT(metrics.body,
                HasSubstr(fmt::format("furlong_hub_limit_names{{limit=\"{}\"}} 10000\n", limit)));
}

// ---- a store in trouble ----

struct Trouble {
  Code code;
  const char* words;
};

class StoreInTrouble : public ::testing::TestWithParam<Trouble> {};

TEST_P(StoreInTrouble, EnrolmentsAloneThatFailAreSaidToo) {
  TestHub fleet;
  fleet.hub();
  const std::string token = fleet.token("good");
  const Code code = GetParam().code;
  fleet.faults->set([code](std::string_view call) -> Status {
    return call == "enrol" ? Status(Error(code, "planted")) : Status();
  });
  EXPECT_EQ(fleet.send(Sender(9).enrolment(token)).status, 503);
  fleet.hub().tick();
  EXPECT_THAT(fleet.all_said(), HasSubstr("planted; enrolments are answered 503"));
  EXPECT_THAT(fleet.send(hub_testing::get("/metrics")).body, HasSubstr("furlong_hub_writes_failing 1\n"));
}

TEST_P(StoreInTrouble, NothingIsAcknowledgedAndItRecovers) {
  TestHub fleet;
  Sender box(1);
  fleet.know(box);
  fleet.hub();
  const std::string body = box.body({json_line(box.record())});
  const Code code = GetParam().code;
  fleet.faults->set([code](std::string_view call) -> Status {
    if (call == "add" || call == "enrol") return Error(code, "planted");
    return {};
  });
  const ServerReply reply = fleet.send(box.request(body));
  EXPECT_EQ(reply.status, 503);
  EXPECT_GE(retry_after(reply), 1);
  EXPECT_THAT(error_of(reply), HasSubstr(GetParam().words));
  EXPECT_THAT(error_of(reply), HasSubstr("planted"));
  const std::string token = fleet.token("good");
  const ServerReply enrolled = fleet.send(Sender(9).enrolment(token));
  EXPECT_EQ(enrolled.status, 503) << "it is not the token's fault: " << enrolled.body;
  fleet.hub().tick();
  EXPECT_THAT(fleet.all_said(), HasSubstr("batches are answered 503"));
  EXPECT_EQ(fleet.send(hub_testing::get("/v1/machines")).status, 200) << "readers are served";
  EXPECT_EQ(fleet.send(hub_testing::get("/healthz")).status, 200);
  EXPECT_THAT(fleet.send(hub_testing::get("/metrics")).body, HasSubstr("furlong_hub_writes_failing 1\n"));

  fleet.faults->set({});
  EXPECT_EQ(parse_batch_reply(fleet.send(box.request(body)).body)->accepted.size(), 1u);
  EXPECT_EQ(fleet.send(Sender(9).enrolment(token)).status, 200);
  fleet.hub().tick();
  EXPECT_THAT(fleet.all_said(), HasSubstr("it can be written to again"));
  EXPECT_EQ(fleet.store()->totals()->races, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, StoreInTrouble,
                         ::testing::Values(Trouble{Code::exhausted, "store is full"},
                                           Trouble{Code::denied, "store is read-only"},
                                           Trouble{Code::unavailable, "store is away"},
                                           Trouble{Code::timeout, "held by another writer"},
                                           Trouble{Code::corrupt, "store is damaged"}),
                         [](const auto& each) { return std::string(code_name(each.param.code)); });

TEST(Flood, AStoreThatIsGoneForReadersToo) {
  TestHub fleet;
  Sender box(1);
  fleet.know(box);
  fleet.hub();
  fleet.faults->set([](std::string_view) -> Status { return fail(Code::unavailable, "connection refused"); });
  EXPECT_EQ(fleet.send(box.request(box.body({}))).status, 503);
  const ServerReply health = fleet.send(hub_testing::get("/healthz"));
  EXPECT_EQ(health.status, 503);
  EXPECT_THAT(error_of(health), HasSubstr("store is away: connection refused"));
  EXPECT_EQ(fleet.send(hub_testing::get("/v1/races")).status, 503);
  fleet.faults->set({});
  EXPECT_EQ(fleet.send(hub_testing::get("/healthz")).status, 200);
  EXPECT_EQ(fleet.send(box.request(box.body({}))).status, 200);
}

/// A file of SQLite that can be read and not written: as a disk that was mounted anew after errors.
TEST(Flood, AFileThatIsReadOnly) {
  const auto folder = *TemporaryFolder::make("read-only-hub");
  const std::string url = "sqlite:" + (folder.path() / "hub.sqlite").string();
  const StoreKind kind = sqlite::store_kind();
  TestHub fleet;
  Sender box(1);
  const Json before = box.record(epoch(1));
  HubSurroundings with = fleet.surroundings();
  std::atomic<bool> read_only = false;
  with.open_store = [&] { return kind.open(url, {.read_only = read_only}); };
  {
    const auto store = *with.open_store();
    ASSERT_TRUE(store->put_machine({.id = box.id(), .key = box.key.public_key}));
    ASSERT_TRUE(store->add_token({.digest = blake2b_256("token"), .expires_us = INT64_MAX}));
    const auto hub = *HubCore::open(fleet.options, with);
    ASSERT_EQ(hub->handle(box.request(box.body({json_line(before)}))).status, 200);
  }
  read_only = true;
  const auto hub = *HubCore::open(fleet.options, with);
  const std::string body = box.body({json_line(box.record(epoch(2)))});
  for (const ServerRequest& request : {box.request(body), Sender(9).enrolment("token")}) {
    const ServerReply reply = hub->handle(request);
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_THAT(error_of(reply), HasSubstr("store is read-only"));
    EXPECT_GE(retry_after(reply), 1);
  }
  hub->tick();
  EXPECT_THAT(fleet.all_said(), HasSubstr("store: read-only: "));
  hub->learner().step();
  for (const char* page : {"/healthz", "/v1/machines", "/v1/cards", "/v1/races"})
    EXPECT_EQ(hub->handle(hub_testing::get(page)).status, 200) << page;
  EXPECT_EQ(hub->handle(hub_testing::get("/v1/races/" + before["id"].get<std::string>())).status, 200);
}

/// Under load the store comes and goes; what was acknowledged is in it, and once it is well, all is.
TEST(Flood, AStoreThatComesAndGoesUnderLoad) {
  TestHub fleet;
  fleet.options.batches_per_minute = 1e9;
  constexpr int threads = 8, batches = 60;
  std::vector<Sender> senders;
  for (std::uint64_t i = 0; i < threads; ++i) {
    senders.emplace_back(i);
    fleet.know(senders.back());
  }
  fleet.hub();
  std::atomic<std::uint64_t> calls = 0;
  fleet.faults->set([&](std::string_view call) -> Status {
    if (call != "add" && call != "machine") return {};
    const std::uint64_t n = ++calls;
    if (n % 7 == 0) return fail(Code::unavailable, "gone");
    if (n % 11 == 0) return fail(Code::exhausted, "no space left");
    return {};
  });
  std::mutex mutex;
  std::vector<std::string> acknowledged;
  std::vector<std::thread> workers;
  for (Sender& sender : senders)
    workers.emplace_back([&] {
      for (std::uint64_t i = 0; i < batches; ++i) {
        const ServerRequest request = sender.request(sender.body({json_line(sender.record(epoch(i)))}));
        for (int tries = 0; tries < 100; ++tries) {
          const ServerReply reply = fleet.hub().handle(request);
          if (reply.status != 200) continue;
          const auto read = parse_batch_reply(reply.body);
          const std::scoped_lock lock(mutex);
          for (const std::string& id : read->accepted) acknowledged.push_back(id);
          break;
        }
      }
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(acknowledged.size(), threads * batches);
  for (const std::string& id : acknowledged) EXPECT_TRUE(*fleet.store()->race(id)) << id;
}

}  // namespace
}  // namespace furlong::fleet
