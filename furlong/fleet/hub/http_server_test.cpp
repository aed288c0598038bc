#include "furlong/fleet/hub/http_server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "furlong/base/log.h"
#include "furlong/base/zip.h"
#include "furlong/fleet/http.h"
#include "furlong/fleet/hub/internal/http/testing.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Answers with what it was asked, in lines.
ServerReply echo(const ServerRequest& request) {
  ServerReply reply{.content_type = "text/plain"};
  reply.body = fmt::format("{} {}\n", request.method, request.path);
  for (const auto& [name, value] : request.query) reply.body += fmt::format("? {}={}\n", name, value);
  reply.body += fmt::format("peer {}\nbody {}", request.peer, request.body);
  return reply;
}

std::unique_ptr<HttpServer> serve(HttpHandler handler = echo, HttpGuard guard = nullptr,
                                  const HttpServerOptions& options = {}) {
  auto server = serve_http(options, std::move(guard), std::move(handler));
  EXPECT_TRUE(server) << server.error().text();
  return server ? std::move(*server) : nullptr;
}

/// Messages while it lives.
class LogCapture {
 public:
  LogCapture()
      : before_(set_log_sink([this](LogLevel, std::string_view text) {
          const std::lock_guard lock(mutex_);
          text_.append(text) += '\n';
        })) {}
  ~LogCapture() { set_log_sink(std::move(before_)); }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  LogSink before_;
};

TEST(HttpServer, AnswersTheAgentsClient) {
  const auto server = serve();
  const auto curl = open_curl();
  ASSERT_TRUE(curl) << curl.error().text();
  const std::string url = fmt::format("http://127.0.0.1:{}/v1/races?card=a%20b&x=+", server->port());
  const auto got = (*curl)->send({.url = url}, {});
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "GET /v1/races\n? card=a b\n? x= \npeer 127.0.0.1\nbody ");
  EXPECT_EQ(got->header("server"), "furlong");
  EXPECT_EQ(got->header("x-content-type-options"), "nosniff");
  EXPECT_EQ(got->header("content-type"), "text/plain");
  EXPECT_EQ(got->header("content-length"), std::to_string(got->body.size()));
  EXPECT_THAT(got->header("date").value_or(""), testing::MatchesRegex("..., .. ... .... ..:..:.. GMT"));

  const std::string body(3 << 20, 'b');
  const auto posted =
      (*curl)->send({.method = "POST", .url = url, .body = body, .max_reply_bytes = 8u << 20}, {});
  ASSERT_TRUE(posted) << posted.error().text();
  EXPECT_EQ(posted->status, 200);
  EXPECT_TRUE(posted->body.ends_with("body " + body));
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  const HttpServerCounts counts = server->counts();
  EXPECT_EQ(counts.accepted, 2u);
  EXPECT_EQ(counts.requests, 2u);
  EXPECT_EQ(counts.malformed + counts.timeouts + counts.too_busy + counts.too_large + counts.failed, 0u);
  EXPECT_EQ(counts.body_bytes, 0u);
}

TEST(HttpServer, AConnectionServesOneRequestAfterTheOther) {
  const auto server = serve();
  RawClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    const RawReply reply = client.exchange(post(fmt::format("/{}", i), "body"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.body, HasSubstr(fmt::format("POST /{}\n", i)));
    EXPECT_EQ(reply.header("connection"), "");
  }
  EXPECT_EQ(server->counts().accepted, 1u);
  const RawReply last = client.exchange(get("/last", "Connection: close\r\n"));
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  HttpServerOptions options;
  options.threads = 4;
  options.network_threads = 2;
  const auto server = serve(echo, nullptr, options);
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += i % 2 == 0 ? get(fmt::format("/{}", i)) : post(fmt::format("/{}", i), std::string(1000, 'x'));
  RawClient client(server->port());
  client.send(all);
  for (int i = 0; i < 50; ++i)
    EXPECT_THAT(client.reply().body, HasSubstr(fmt::format(" /{}\n", i))) << "the reply of rank " << i;
}

TEST(HttpServer, TheOldProtocolIsSpokenToo) {
  const auto server = serve();
  RawClient one(server->port());
  const RawReply reply = one.exchange("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(one.is_closed());
  RawClient two(server->port());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(two.exchange("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("connection"),
              "keep-alive");
}

TEST(HttpServer, HeadIsAnsweredWithoutABody) {
  const auto server = serve([](const ServerRequest&) { return ServerReply{.body = "twelve bytes"}; });
  RawClient client(server->port());
  client.send("HEAD /x HTTP/1.1\r\nHost: hub\r\n\r\n");
  const RawReply head = client.reply(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), "12");
  EXPECT_EQ(client.exchange(get("/x")).body, "twelve bytes") << "what follows starts with a status line";
}

TEST(HttpServer, SomeStatusesHaveNoBody) {
  const auto server = serve([](const ServerRequest& request) {
    return ServerReply{
        .status = request.path == "/204" ? 204 : 304, .headers = {{"ETag", "\"1\""}}, .body = "none"};
  });
  RawClient client(server->port());
  for (const int status : {204, 304}) {
    const RawReply reply = client.exchange(get(fmt::format("/{}", status)));
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.body, "");
    EXPECT_EQ(reply.count("content-length"), 0u);
    EXPECT_EQ(reply.header("etag"), "\"1\"");
  }
}

TEST(HttpServer, ChunkedBodiesAreJoined) {
  std::mutex mutex;
  ServerRequest seen;
  const auto server = serve([&](const ServerRequest& request) {
    const std::lock_guard lock(mutex);
    seen = request;
    return echo(request);
  });
  const std::string request =
      "POST /c HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;name=\"value\"\r\nhello\r\n1\r\n \r\n00A\r\nchunkybody\r\n0\r\nX-Admin: yes\r\n\r\n";
  RawClient client(server->port());
  EXPECT_THAT(client.exchange(request).body, HasSubstr("body hello chunkybody"));
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(seen.header("x-admin"), "") << "a trailer is no header: the guard has not seen it";
    EXPECT_EQ(seen.header("host"), "hub");
  }
  for (const char byte : request) client.send({&byte, 1});
  EXPECT_THAT(client.reply().body, HasSubstr("body hello chunkybody"));
}

TEST(HttpServer, AClientThatAsksMaySendItsBodyAfterTheGuard) {
  std::atomic<int> handled = 0;
  const auto server = serve(
      [&](const ServerRequest& request) {
        ++handled;
        return echo(request);
      },
      [](const ServerRequest& head) -> std::optional<ServerReply> {
        if (head.header("authorization").empty()) return ServerReply{.status = 401, .body = "who?"};
        return std::nullopt;
      });
  const std::string head = "POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 4\r\nExpect: 100-continue\r\n";
  RawClient stranger(server->port());
  const RawReply no = stranger.exchange(head + "\r\n");
  EXPECT_EQ(no.status, 401) << "and no 100 before it";
  EXPECT_EQ(no.body, "who?");
  EXPECT_EQ(no.header("connection"), "close") << "its body may come all the same";
  EXPECT_TRUE(stranger.is_closed());
  EXPECT_EQ(handled, 0);

  RawClient known(server->port());
  EXPECT_EQ(known.exchange(head + "Authorization: me\r\n\r\n").status, 100);
  EXPECT_THAT(known.exchange("body").body, HasSubstr("body body"));
  // One that does not wait for the word does not get it.
  EXPECT_EQ(known.exchange(head + "Authorization: me\r\n\r\nbody").status, 200);
  EXPECT_EQ(handled, 2);
  RawClient odd(server->port());
  EXPECT_EQ(odd.exchange(post("/x", "", "Expect: a-miracle\r\n")).status, 417);
}

TEST(HttpServer, TheGuardIsAskedBeforeTheBodyIsRead) {
  std::mutex mutex;
  std::vector<std::string> asked;
  const auto server = serve(echo, [&](const ServerRequest& head) -> std::optional<ServerReply> {
    const std::lock_guard lock(mutex);
    asked.push_back(head.method + head.path + head.body + head.peer);
    if (head.path == "/no") return ServerReply{.status = 403, .headers = {{"Retry-After", "7"}}};
    return std::nullopt;
  });
  RawClient client(server->port());
  const RawReply reply = client.exchange("POST /no HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(reply.header("retry-after"), "7");
  RawClient other(server->port());
  EXPECT_EQ(other.exchange(get("/no")).status, 403);
  EXPECT_EQ(other.exchange(post("/yes", "b")).status, 200) << "without a body unread it stays open";
  const std::lock_guard lock(mutex);
  EXPECT_THAT(asked, testing::ElementsAre("POST/no127.0.0.1", "GET/no127.0.0.1", "POST/yes127.0.0.1"));
}

TEST(HttpServer, WhatAHandlerThrowsIsNotTold) {
  const LogCapture log;
  const auto server = serve(
      [](const ServerRequest& request) -> ServerReply {
        if (request.path == "/unknown") throw 7;
        throw std::runtime_error("the password is 1234\nforged: line");
      },
      [](const ServerRequest& head) -> std::optional<ServerReply> {
        if (head.path == "/guard") throw std::runtime_error("the guard's secret");
        return std::nullopt;
      });
  RawClient client(server->port());
  for (const char* path : {"/known", "/unknown", "/guard"}) {
    const RawReply reply = client.exchange(get(path));
    EXPECT_EQ(reply.status, 500) << path;
    EXPECT_THAT(reply.body, HasSubstr(R"("code":"internal")"));
    EXPECT_THAT(reply.body, Not(HasSubstr("1234")));
    EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
  }
  EXPECT_EQ(server->counts().failed, 3u);
  EXPECT_THAT(log.text(), HasSubstr("the password is 1234 forged"));
}

TEST(HttpServer, AReplyCannotBeSplit) {
  const LogCapture log;
  std::vector<ServerReply> bad;
  bad.push_back({.headers = {{"Location", "/a\r\nSet-Cookie: x=1"}}});
  bad.push_back({.headers = {{"Location", "/a\nX: y"}}});
  bad.push_back({.headers = {{"X\r\nY", "1"}}});
  bad.push_back({.headers = {{"X Y", "1"}}});
  bad.push_back({.headers = {{"", "1"}}});
  bad.push_back({.headers = {{"X", std::string("a\0b", 3)}}});
  bad.push_back({.headers = {{"content-length", "1"}}});
  bad.push_back({.headers = {{"Transfer-Encoding", "chunked"}}});
  bad.push_back({.headers = {{"Connection", "upgrade"}}});
  bad.push_back({.content_type = "text/html\r\nX: y"});
  bad.push_back({.status = 99});
  bad.push_back({.status = 100});
  bad.push_back({.status = 1000});
  const auto server = serve([&](const ServerRequest& request) {
    return bad[static_cast<std::size_t>(std::atoi(request.path.c_str() + 1))];
  });
  for (std::size_t i = 0; i < bad.size(); ++i) {
    RawClient client(server->port());
    client.send(get(fmt::format("/{}", i), "Connection: close\r\n"));
    const std::string all = client.rest();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 500 ")) << i << ": " << all;
    EXPECT_THAT(all, Not(HasSubstr("Set-Cookie"))) << i;
    EXPECT_THAT(all, Not(HasSubstr("X: y"))) << i;
  }
  EXPECT_EQ(server->counts().failed, bad.size());
  EXPECT_THAT(log.text(), HasSubstr("Location has a control character"));
}

TEST(HttpServer, TextIsCompressedForWhoTakesIt) {
  const std::string text(5000, 'a');
  const auto server = serve([&](const ServerRequest& request) {
    ServerReply reply{.headers = {{"ETag", "\"v1\""}}, .body = text};
    if (request.path == "/small") reply.body = "{}";
    if (request.path == "/image") reply.content_type = "image/png";
    if (request.path == "/ready") reply.headers.emplace_back("Content-Encoding", "br");
    return reply;
  });
  RawClient client(server->port());
  const auto ask = [&](std::string_view path, std::string_view accepts) {
    return client.exchange(get(path, fmt::format("Accept-Encoding: {}\r\n", accepts)));
  };
  for (const char* accepts : {"gzip", "deflate, gzip;q=0.5", "*", "br, GZIP"}) {
    const RawReply reply = ask("/", accepts);
    EXPECT_EQ(reply.header("content-encoding"), "gzip") << accepts;
    EXPECT_EQ(reply.header("vary"), "Accept-Encoding");
    EXPECT_EQ(reply.header("etag"), "\"v1\"");
    EXPECT_LT(reply.body.size(), text.size() / 10);
    EXPECT_EQ(inflate_gzip(reply.body, 1u << 20).value_or(""), text);
  }
  for (const char* accepts : {"", "identity", "gzip;q=0", "*, gzip; q=0.0", "*;q=0"}) {
    const RawReply reply = ask("/", accepts);
    EXPECT_EQ(reply.header("content-encoding"), "") << accepts;
    EXPECT_EQ(reply.header("vary"), "Accept-Encoding") << "a cache between must know";
    EXPECT_EQ(reply.body, text);
  }
  EXPECT_EQ(ask("/small", "gzip").header("content-encoding"), "");
  EXPECT_EQ(ask("/image", "gzip").header("content-encoding"), "");
  EXPECT_EQ(ask("/ready", "gzip").header("content-encoding"), "br");
  EXPECT_EQ(ask("/ready", "gzip").count("content-encoding"), 1u);
}

TEST(HttpServer, CompressedBodiesAreUnpacked) {
  HttpServerOptions options;
  options.most_body_bytes = 64u << 10;
  const auto server = serve(echo, nullptr, options);
  const std::string text(10'000, 't');
  RawClient client(server->port());
  for (const auto& [coding, packed] : {std::pair{"gzip", *gzip(text)},
                                       {"x-gzip", *gzip(text)},
                                       {"Deflate", *deflate(text)},
                                       {"identity", text}}) {
    const RawReply reply =
        client.exchange(post("/", packed, fmt::format("Content-Encoding: {}\r\n", coding)));
    EXPECT_EQ(reply.status, 200) << coding;
    EXPECT_TRUE(reply.body.ends_with("body " + text)) << coding;
  }
  const std::string whole = *gzip(text);
  for (const std::string& broken :
       {whole.substr(0, whole.size() - 3), text, whole + "x", std::string("\x1f\x8b")})
    EXPECT_EQ(client.exchange(post("/", broken, "Content-Encoding: gzip\r\n")).status, 400);
  EXPECT_EQ(client.exchange(post("/", whole, "Content-Encoding: deflate\r\n")).status, 400);
  EXPECT_EQ(server->counts().malformed, 5u);

  // 16 MiB of zeros in 16 KiB: never more than the limit is held (furlong/base/zip.h).
  const std::string bomb = *gzip(std::string(16u << 20, '\0'));
  ASSERT_LT(bomb.size(), options.most_body_bytes);
  const RawReply large = client.exchange(post("/", bomb, "Content-Encoding: gzip\r\n"));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(server->counts().too_large, 1u);
  EXPECT_EQ(client.exchange(get("/")).status, 200) << "the connection goes on";
  EXPECT_EQ(server->counts().body_bytes, 0u);

  for (const char* unknown : {"Content-Encoding: br\r\n", "Content-Encoding: gzip, gzip\r\n",
                              "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"}) {
    RawClient other(server->port());
    const RawReply reply = other.exchange(post("/", whole, unknown));
    EXPECT_EQ(reply.status, 415) << unknown;
    EXPECT_EQ(reply.header("accept-encoding"), "gzip, deflate");
  }
}

TEST(HttpServer, BothFamiliesOfAddresses) {
  HttpServerOptions options;
  options.address = "::";
  auto both = serve_http(options, nullptr, echo);
  if (!both && both.error().code() == Code::unavailable)
    GTEST_SKIP() << "this machine has no IPv6: " << both.error().text();
  ASSERT_TRUE(both) << both.error().text();
  RawClient four((*both)->port(), "127.0.0.1");
  EXPECT_THAT(four.exchange(get("/")).body, HasSubstr("peer 127.0.0.1\n"));
  options.address = "[::1]";
  const auto six = serve_http(options, nullptr, echo);
  if (!six) GTEST_SKIP() << "this machine has no ::1: " << six.error().text();
  RawClient client((*six)->port(), "::1");
  EXPECT_THAT(client.exchange(get("/")).body, HasSubstr("peer ::1\n"));
}

TEST(HttpServer, AnAddressThatIsNotToBeHadIsNamed) {
  const auto server = serve();
  const auto error = [](const std::string& address, std::uint16_t port) {
    HttpServerOptions options;
    options.address = address;
    options.port = port;
    const auto refused = serve_http(options, nullptr, echo);
    return refused ? Error(Code::internal, "it listens") : refused.error();
  };
  const Error taken = error("127.0.0.1", server->port());
  EXPECT_EQ(taken.code(), Code::unavailable);
  EXPECT_THAT(taken.text(), HasSubstr(fmt::format("127.0.0.1:{} is taken", server->port())));
  EXPECT_THAT(taken.text(), HasSubstr("choose another port"));
  const Error foreign = error("192.0.2.1", 0);  // no machine's: RFC 5737
  EXPECT_EQ(foreign.code(), Code::unavailable);
  EXPECT_THAT(foreign.text(), HasSubstr("192.0.2.1"));
  const Error word = error("hub.example", 0);
  EXPECT_EQ(word.code(), Code::invalid);
  EXPECT_THAT(word.text(), HasSubstr("'hub.example' is no address"));
}

TEST(HttpServer, StopLetsARequestEnd) {
  std::atomic<bool> begun = false, may_end = false;
  const auto server = serve([&](const ServerRequest& request) {
    begun = true;
    while (!may_end) std::this_thread::yield();
    return echo(request);
  });
  RawClient idle(server->port()), busy(server->port());
  idle.send("");
  busy.send(get("/busy"));
  ASSERT_TRUE(comes_true([&] { return begun.load() && server->counts().connections == 2; }));
  std::jthread stopper([&] { server->stop(); });
  EXPECT_TRUE(idle.is_closed());
  EXPECT_FALSE(RawClient(server->port()).is_connected()) << "it no longer listens";
  may_end = true;
  const RawReply reply = busy.reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("connection"), "close");
  busy.close();
  stopper.join();
  EXPECT_EQ(server->counts().connections, 0u);
  server->stop();  // again: nothing to do
}

TEST(HttpServer, StopGivesUpWhatDoesNotEnd) {
  std::atomic<int> done = 0;
  HttpServerOptions options;
  options.stop_grace_s = 0.1;
  options.threads = 1;
  auto server = serve(
      [&](const ServerRequest& request) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        ++done;
        return echo(request);
      },
      nullptr, options);
  RawClient half(server->port()), working(server->port()), waiting(server->port());
  half.send("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 5\r\n\r\nab");
  working.send(get("/1"));
  waiting.send(get("/2"));
  ASSERT_TRUE(comes_true([&] { return server->counts().requests == 3; }));
  server.reset();  // the destructor stops
  EXPECT_TRUE(half.is_closed());
  EXPECT_THAT(half.rest(), "");
  EXPECT_LE(done, 2) << "it waits for the handler that runs";
  EXPECT_TRUE(working.is_closed());
  EXPECT_TRUE(waiting.is_closed());
}

}  // namespace
}  // namespace furlong::fleet
