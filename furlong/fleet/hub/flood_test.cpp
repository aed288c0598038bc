// Whatever is sent, memory stays bounded and the others are served: the floods that a hub meets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "furlong/fleet/hub/internal/testing.h"

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
  EXPECT_LE(fleet.said.size(), 1010u);
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
  EXPECT_EQ(fleet.send(good.request(good.body({}))).status, 200);
  EXPECT_EQ(fleet.send(good.request(good.body({}), "198.51.100.9")).status, 429)
      << "from the thief's own address its forgeries count for this name";
}

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
  EXPECT_THAT(fleet.all_said(), HasSubstr("it takes batches again"));
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
