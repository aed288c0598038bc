// Limits of size, number and time.

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "furlong/base/log.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/internal/http/testing.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

ServerReply size_of(const ServerRequest& request) { return {.body = std::to_string(request.body.size())}; }

std::unique_ptr<HttpServer> serve(const HttpServerOptions& options, HttpHandler handler = size_of) {
  auto server = serve_http(options, nullptr, std::move(handler));
  EXPECT_TRUE(server) << server.error().text();
  return server ? std::move(*server) : nullptr;
}

/// A handler that waits until it is told.
struct Gate {
  std::atomic<int> inside = 0;
  std::atomic<bool> open = false;
  HttpHandler handler() {
    return [this](const ServerRequest& request) {
      ++inside;
      while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return size_of(request);
    };
  }
};

const std::string head_of_large = "POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 100000\r\n\r\n";

TEST(HttpLimits, HeadersAreBounded) {
  HttpServerOptions options;
  options.most_header_bytes = 2000;
  const auto server = serve(options);
  RawClient right(server->port());
  EXPECT_EQ(right.exchange(get("/", fmt::format("X: {}\r\n", std::string(1900, 'x')))).status, 200);
  const std::string long_field = get("/", fmt::format("X: {}\r\n", std::string(2000, 'x')));
  const std::string long_target = get("/" + std::string(2000, 'x'));
  std::string many;
  for (int i = 0; i < 200; ++i) many += "X:y\r\n";
  std::uint64_t refused = 0;
  for (const std::string& request : {long_field, long_target, get("/", many), std::string(100'000, 'x'),
                                     "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x')}) {
    RawClient client(server->port());
    client.send(request);
    EXPECT_EQ(client.reply().status, 431) << request.substr(0, 50);
    EXPECT_EQ(client.rest(), "");
    EXPECT_EQ(server->counts().too_large, ++refused);
  }
}

TEST(HttpLimits, ABodyThatIsAnnouncedTooLargeIsNotRead) {
  HttpServerOptions options;
  options.most_body_bytes = 10;
  const auto server = serve(options);
  RawClient client(server->port());
  EXPECT_EQ(client.exchange(post("/", "0123456789")).body, "10");
  const RawReply reply = client.exchange(head_of_large);
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr("larger than 10 bytes"));
  client.end_sending();
  EXPECT_TRUE(client.is_closed());
  // One that sends it all before it listens gets the reply too.
  RawClient stubborn(server->port());
  stubborn.send("POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 4000000\r\n\r\n" +
                std::string(4'000'000, 'x'));
  EXPECT_EQ(stubborn.reply().status, 413);
  EXPECT_EQ(server->counts().too_large, 2u);
}

TEST(HttpLimits, AChunkedBodyIsRefusedWhileItComes) {
  HttpServerOptions options;
  options.most_body_bytes = 1000;
  const auto server = serve(options);
  const std::string head = "POST /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n";
  RawClient right(server->port());
  std::string ones = head;
  for (int i = 0; i < 1000; ++i) ones += "1\r\nx\r\n";
  EXPECT_EQ(right.exchange(ones + "0\r\n\r\n").body, "1000");
  RawClient client(server->port());
  client.send(head + "3E8\r\n" + std::string(1000, 'x') + "\r\n");
  client.send("1\r\nx");  // not yet at its end
  EXPECT_EQ(client.reply().status, 413);
  RawClient wasteful(server->port());
  std::string waste = head;
  for (int i = 0; i < 100; ++i) waste += "1;" + std::string(100, 'e') + "\r\nx\r\n";
  wasteful.send(waste);
  EXPECT_EQ(wasteful.reply().status, 413);
  RawClient endless(server->port());
  endless.send(head + "1;" + std::string(100'000, 'e'));
  EXPECT_EQ(endless.reply().status, 400);
  EXPECT_EQ(server->counts().too_large, 2u);
  EXPECT_EQ(server->counts().body_bytes, 0u);
}

TEST(HttpLimits, BodiesShareTheirMemory) {
  Gate gate;
  HttpServerOptions options;
  options.most_memory_bytes = 150'000;
  options.threads = 4;
  const auto server = serve(options, gate.handler());
  RawClient first(server->port());
  first.send(head_of_large + std::string(100'000, 'x'));
  ASSERT_TRUE(comes_true([&] { return gate.inside == 1; }));
  EXPECT_EQ(server->counts().body_bytes, 100'000u);

  RawClient second(server->port());
  const RawReply reply = second.exchange(head_of_large);
  EXPECT_EQ(reply.status, 429) << "before its body is read";
  EXPECT_EQ(reply.header("retry-after"), "5");
  EXPECT_EQ(server->counts().too_busy, 1u);
  RawClient chunked(server->port());
  chunked.send("POST /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n" +
               std::string(100'000, 'x') + "\r\n");
  const RawReply grown = chunked.reply();
  EXPECT_EQ(grown.status, 429) << "its length was not known before";
  EXPECT_EQ(grown.header("retry-after"), "5");
  RawClient bodyless(server->port());
  bodyless.send(get("/"));
  ASSERT_TRUE(comes_true([&] { return gate.inside == 2; }));

  gate.open = true;
  EXPECT_EQ(first.reply().body, "100000");
  EXPECT_EQ(bodyless.reply().status, 200);
  EXPECT_TRUE(comes_true([&] { return server->counts().body_bytes == 0; }));
  RawClient third(server->port());
  EXPECT_EQ(third.exchange(head_of_large + std::string(100'000, 'x')).body, "100000");
  EXPECT_EQ(server->counts().too_busy, 2u);
}

TEST(HttpLimits, WhatIsOnlyAnnouncedTakesNoMemory) {
  HttpServerOptions options;
  options.most_memory_bytes = 1u << 20;
  options.most_body_bytes = 1u << 20;
  const auto server = serve(options);
  std::vector<RawClient> liars;
  for (int i = 0; i < 10; ++i) {
    liars.emplace_back(server->port());
    liars.back().send("POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 300000\r\n\r\n");
  }
  ASSERT_TRUE(comes_true([&] { return server->counts().requests == 10; }));
  RawClient honest(server->port());
  EXPECT_EQ(honest.exchange(head_of_large + std::string(100'000, 'x')).body, "100000");
}

TEST(HttpLimits, RepliesShareTheirMemoryToo) {
  HttpServerOptions options;
  options.most_memory_bytes = 12u << 20;
  options.write_timeout_s = options.idle_timeout_s = 600;
  options.threads = 4;
  const auto server = serve(options, [](const ServerRequest& request) {
    return ServerReply{.body = std::string(request.path == "/large" ? 16u << 20 : 10, 'r')};
  });
  RawClient slow(server->port());
  slow.send(get("/large"));  // and does not read; more than the system's buffers hold
  RawClient other(server->port());
  EXPECT_TRUE(comes_true([&] { return other.exchange(get("/")).status == 503; }));
  EXPECT_EQ(slow.reply().body.size(), 16u << 20) << "one that is larger than all is sent";
  EXPECT_TRUE(comes_true([&] { return other.exchange(get("/")).status == 200; }));
}

TEST(HttpLimits, ConnectionsAreCounted) {
  HttpServerOptions options;
  options.most_connections = 3;
  const auto server = serve(options);
  {
    std::vector<RawClient> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back(server->port());
      EXPECT_EQ(clients.back().exchange(get("/")).status, 200);
    }
    EXPECT_TRUE(RawClient(server->port()).is_closed());
    EXPECT_EQ(clients[0].exchange(get("/")).status, 200);
    EXPECT_EQ(server->counts().connections, 3u);
    EXPECT_EQ(server->counts().refused_connections, 1u);
  }
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(RawClient(server->port()).exchange(get("/")).status, 200);
}

TEST(HttpLimits, OnePeerCannotTakeAllConnections) {
  HttpServerOptions options;
  options.most_connections_per_peer = 2;
  options.address = "0.0.0.0";
  const auto server = serve(options);
  RawClient one(server->port()), two(server->port());
  EXPECT_EQ(one.exchange(get("/")).status, 200);
  EXPECT_EQ(two.exchange(get("/")).status, 200);
  EXPECT_TRUE(RawClient(server->port()).is_closed());
  one.close();
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 1; }));
  EXPECT_EQ(RawClient(server->port()).exchange(get("/")).status, 200);
}

TEST(HttpLimits, WhoWaitsTooLongForAThreadIsSentAway) {
  Gate gate;
  HttpServerOptions options;
  options.threads = 1;
  options.most_waiting = 1;
  const auto server = serve(options, gate.handler());
  RawClient working(server->port()), waiting(server->port()), third(server->port());
  working.send(get("/"));
  ASSERT_TRUE(comes_true([&] { return gate.inside == 1; }));
  waiting.send(get("/"));
  ASSERT_TRUE(comes_true([&] { return server->counts().requests == 2; }));
  // The count is ahead of the queue by a moment.
  EXPECT_TRUE(comes_true([&] {
    const RawReply reply = third.exchange(get("/"));
    return reply.status == 503 && reply.header("retry-after") == "1";
  }));
  RawClient large(server->port());
  EXPECT_EQ(large.exchange(head_of_large).status, 503) << "before its body is read";
  EXPECT_EQ(server->counts().too_busy, 2u);
  gate.open = true;
  EXPECT_EQ(working.reply().status, 200);
  EXPECT_EQ(waiting.reply().status, 200);
  EXPECT_EQ(third.exchange(get("/")).status, 200) << "503 does not close";
}

TEST(HttpLimits, AHeaderThatDoesNotEndIsGivenUp) {
  HttpServerOptions options;
  options.header_timeout_s = 0.3;
  const auto server = serve(options);
  RawClient half(server->port());
  half.send("GET / HTTP/1.1\r\nHost:");
  EXPECT_EQ(half.reply().status, 408);
  EXPECT_TRUE(half.is_closed());
  EXPECT_EQ(server->counts().timeouts, 1u);
  RawClient silent(server->port());
  EXPECT_TRUE(silent.is_closed()) << "who says nothing hears nothing";
  EXPECT_EQ(server->counts().timeouts, 1u);
}

TEST(HttpLimits, TricklesAreGivenUp) {
  HttpServerOptions options;
  options.slow_grace_s = 0.2;
  options.slowest_bytes_per_s = 10'000;
  const auto server = serve(options);
  for (const std::string& start : {std::string("GET / HTTP/1.1\r\nX: "), head_of_large}) {
    RawClient client(server->port());
    client.send(start);
    std::jthread trickle([&](const std::stop_token& stop) {
      while (!stop.stop_requested() && client.send("x"))
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
    const RawReply reply = client.reply();
    EXPECT_TRUE(reply.status == 408 || reply.status == 0) << reply.status;  // 0: reset by what came after it
  }
  EXPECT_EQ(server->counts().timeouts, 2u);
  EXPECT_EQ(server->counts().body_bytes, 0u);
}

TEST(HttpLimits, ABodyThatDoesNotEndIsGivenUp) {
  HttpServerOptions options;
  options.body_timeout_s = 0.3;
  const auto server = serve(options);
  RawClient client(server->port());
  client.send(head_of_large + std::string(90'000, 'x'));
  EXPECT_EQ(client.reply().status, 408);
  EXPECT_TRUE(client.is_closed());
  RawClient polite(server->port());
  EXPECT_EQ(
      polite.exchange("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
          .status,
      100);
  EXPECT_EQ(polite.reply().status, 408);
  EXPECT_EQ(server->counts().timeouts, 2u);
  EXPECT_EQ(server->counts().body_bytes, 0u);
}

TEST(HttpLimits, IdleConnectionsAreClosed) {
  HttpServerOptions options;
  options.idle_timeout_s = 0.3;
  const auto server = serve(options);
  RawClient client(server->port());
  EXPECT_EQ(client.exchange(get("/")).status, 200);
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(server->counts().timeouts, 0u);
}

TEST(HttpLimits, AReplyThatNobodyReadsIsGivenUp) {
  HttpServerOptions options;
  options.write_timeout_s = 0.5;
  const auto server =
      serve(options, [](const ServerRequest&) { return ServerReply{.body = std::string(32u << 20, 'r')}; });
  RawClient client(server->port());
  client.send(get("/"));
  EXPECT_TRUE(comes_true([&] { return server->counts().timeouts == 1; }));
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  EXPECT_LT(client.rest().size(), 32u << 20);
}

TEST(HttpLimits, AHandlerThatDoesNotEndIsGivenUp) {
  Gate gate;
  HttpServerOptions options;
  options.handler_timeout_s = 0.3;
  options.threads = 1;
  const auto server = serve(options, gate.handler());
  RawClient client(server->port()), behind(server->port());
  client.send(get("/"));
  ASSERT_TRUE(comes_true([&] { return gate.inside == 1; }));
  behind.send(get("/"));
  for (RawClient* one : {&client, &behind}) {
    const RawReply reply = one->reply();
    EXPECT_EQ(reply.status, 500);
    EXPECT_THAT(reply.body, HasSubstr("took too long"));
    EXPECT_TRUE(one->is_closed()) << "the reply that comes after its time goes nowhere";
  }
  EXPECT_EQ(server->counts().timeouts, 2u);
  gate.open = true;
  RawClient next(server->port());
  EXPECT_EQ(next.exchange(get("/")).status, 200);
  EXPECT_EQ(gate.inside, 2) << "whom nobody waits for any more is not worked on";
}

int threads_of_this_program() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("Threads:")) return std::atoi(line.c_str() + 8);
  return -1;
}

TEST(HttpLimits, ThousandsOfSlowConnectionsCostNoThread) {
  constexpr int wanted = 2000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * wanted + 500);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2 * wanted + 200)
    GTEST_SKIP() << "this machine allows " << limit.rlim_cur << " descriptors";
  HttpServerOptions options;
  options.most_connections_per_peer = wanted + 10;
  options.header_timeout_s = options.body_timeout_s = options.slow_grace_s = 600;
  options.stop_grace_s = 0.1;
  {
    const auto server = serve(options);
    EXPECT_EQ(RawClient(server->port()).exchange(get("/")).status, 200);
    const int threads = threads_of_this_program();
    std::vector<RawClient> slow;
    slow.reserve(wanted);
    for (int i = 0; i < wanted; ++i) {
      slow.emplace_back(server->port());
      ASSERT_TRUE(slow.back().is_connected()) << i;
      slow.back().send(i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: h" : head_of_large.c_str());
    }
    EXPECT_TRUE(comes_true([&] { return server->counts().connections >= wanted; }));
    EXPECT_EQ(threads_of_this_program(), threads);
    RawClient honest(server->port());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(honest.exchange(post("/", "body")).body, "4");
    slow[0].send("ub\r\n\r\n");
    EXPECT_EQ(slow[0].reply().status, 200) << "they are served once they end";
    EXPECT_EQ(server->counts().timeouts, 0u);
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(HttpLimits, SomeDescriptorsAreLeftForTheRest) {
  std::atomic<bool> warned = false;
  LogSink log = set_log_sink([&](LogLevel, std::string_view text) {
    if (text.find("takes 150 connections at once, not 4096") != std::string_view::npos) warned = true;
  });
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 250, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const auto server = serve({});
  setrlimit(RLIMIT_NOFILE, &before);
  set_log_sink(std::move(log));
  EXPECT_TRUE(warned);
  std::vector<RawClient> clients;
  clients.reserve(151);
  for (int i = 0; i < 151; ++i) {
    clients.emplace_back(server->port());
    if (i < 150) {
      EXPECT_EQ(clients.back().exchange(get("/")).status, 200);
    }
  }
  EXPECT_TRUE(clients.back().is_closed());
}

TEST(HttpLimits, WithoutDescriptorsClientsWait) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs descriptors of its own to look at an object's type";
#endif
  std::atomic<bool> warned = false;
  LogSink log = set_log_sink([&](LogLevel, std::string_view text) {
    if (text.find("ulimit -n") != std::string_view::npos) warned = true;
  });
  const auto server = serve({});
  EXPECT_EQ(RawClient(server->port()).exchange(get("/")).status, 200);
  ASSERT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // The client's descriptor is the last that there is.
  const int next = dup(0);
  ASSERT_GE(next, 0);
  ::close(next);
  const rlimit scarce{.rlim_cur = static_cast<rlim_t>(next) + 1, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &scarce);
  RawClient client(server->port());
  const bool connected = client.is_connected();
  const bool noticed = comes_true([&] { return warned.load(); });
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(connected);
  EXPECT_TRUE(noticed);
  EXPECT_EQ(client.exchange(get("/")).status, 200) << "it is taken once there are some again";
  set_log_sink(std::move(log));
}

}  // namespace
}  // namespace furlong::fleet
