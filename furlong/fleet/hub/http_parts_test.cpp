// The server's parts, each alone.

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "furlong/base/random.h"
#include "furlong/fleet/hub/internal/http/budget.h"
#include "furlong/fleet/hub/internal/http/handler_pool.h"
#include "furlong/fleet/hub/internal/http/reply.h"
#include "furlong/fleet/hub/internal/http/request_reader.h"
#include "furlong/fleet/hub/internal/http/target.h"

namespace furlong::fleet {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

TEST(HttpTarget, IsDecodedOnce) {
  const auto target = parse_target("/a%2Fb/%25%41?x=1&&y=a+b%2B&z&=e&x=2%3d3");
  ASSERT_TRUE(target) << target.error().text();
  EXPECT_EQ(target->path, "/a/b/%A");
  EXPECT_EQ(target->query, (Query{{"x", "1"}, {"y", "a b+"}, {"z", ""}, {"", "e"}, {"x", "2=3"}}));
  EXPECT_EQ(parse_target("/a+b")->path, "/a+b") << "a plus is a blank in the query only";
  EXPECT_EQ(parse_target("/")->query, Query{});
  EXPECT_EQ(parse_target("/?")->query, Query{});
  EXPECT_EQ(parse_target("/x?a=b?c=d")->query, (Query{{"a", "b?c=d"}}));
  EXPECT_EQ(*parse_target("https://hub.example:8443/x?y"), *parse_target("/x?y"));
  EXPECT_EQ(*parse_target("http://hub?y"), *parse_target("/?y"));
}

TEST(HttpTarget, WhatIsWrongIsSaid) {
  const auto error = [](std::string_view target) {
    const auto parsed = parse_target(target);
    return parsed ? "" : parsed.error().message();
  };
  EXPECT_EQ(error(""), "the target of the request is neither a path nor an http address");
  EXPECT_EQ(error("x"), error(""));
  EXPECT_EQ(error("*"), error(""));
  EXPECT_EQ(error("ftp://hub/"), error(""));
  EXPECT_EQ(error("http:///x"), "the target of the request is an address without a host");
  EXPECT_EQ(error("/%"), "the path has a '%' that is not followed by two hexadecimal digits");
  EXPECT_EQ(error("/%4"), error("/%"));
  EXPECT_EQ(error("/%4g"), error("/%"));
  EXPECT_EQ(error("/?a=%+1"), "the query has a '%' that is not followed by two hexadecimal digits");
  EXPECT_EQ(error("/%00"), "the path has a control character");
  EXPECT_EQ(error("/%7F"), error("/%00"));
  EXPECT_EQ(error("/?%0a"), "the query has a control character");
  EXPECT_EQ(error("/%c0%af"), "the path is no valid UTF-8") << "an overlong slash";
  EXPECT_EQ(error("/?x=%ff"), "the query is no valid UTF-8");
  EXPECT_EQ(error("/a b"), "the target of the request has a byte that must be escaped");
  EXPECT_EQ(error("/a#b"), error("/a b"));
  std::string many = "/?";
  for (std::size_t i = 0; i < most_parameters; ++i) many += "a&";
  EXPECT_EQ(error(many), "");
  EXPECT_EQ(error(many + "a"), "the query has more than 256 parameters");
}

TEST(HttpReply, DatesAreThoseOfTheStandard) {
  EXPECT_EQ(http_date(784111777000000), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST(HttpReply, TheHeadIsPrinted) {
  const ServerReply reply{
      .status = 200, .headers = {{"ETag", "\"1\""}}, .body = "four", .content_type = "text/css"};
  EXPECT_EQ(print_head(reply, {.wall_us = 0}),
            "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: furlong\r\n"
            "X-Content-Type-Options: nosniff\r\nContent-Type: text/css\r\nContent-Length: 4\r\nETag: "
            "\"1\"\r\n\r\n");
  const std::string own =
      print_head({.status = 299, .headers = {{"content-type", "a/b"}}}, {.keep_alive = false});
  EXPECT_TRUE(own.starts_with("HTTP/1.1 299 \r\n"));
  EXPECT_EQ(own.find("application/json"), std::string::npos);
  EXPECT_NE(own.find("Connection: close\r\n"), std::string::npos);
}

struct Outcome {
  RequestReader::Stage stage;
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> headers;
  int status;
  std::size_t taken;
  bool operator==(const Outcome&) const = default;
};

/// Feeds pieces of the sizes that `next` gives.
template <class Next>
Outcome read(std::string_view bytes, Next next) {
  const auto reader = RequestReader::make(4000);
  Outcome out{};
  reader->set_sink([&](std::string_view piece) {
    out.body += piece;
    return Refusal();
  });
  std::string_view left = bytes;
  while (!left.empty() && reader->stage() < RequestReader::Stage::complete) {
    const std::string piece(
        left.substr(0, std::max<std::size_t>(1, next())));  // its own memory, for the sanitizer
    std::size_t taken = 0;
    // What a feed leaves, as that after the head, comes again.
    do taken += reader->feed(std::string_view(piece).substr(taken));
    while (taken < piece.size() && reader->stage() < RequestReader::Stage::complete);
    left.remove_prefix(taken);
  }
  out.stage = reader->stage();
  out.method = reader->head().method;
  out.target = reader->head().target;
  out.headers = reader->head().headers;
  out.status = reader->refusal().status;
  out.taken = out.stage == RequestReader::Stage::complete ? bytes.size() - left.size() : 0;
  return out;
}

TEST(HttpRequestReader, HowBytesArriveMakesNoDifference) {
  const std::string fields = "Host: hub\r\nX-A:\t b \r\nX-Empty:\r\n";
  const std::vector<std::string> requests{
      "GET /a?b HTTP/1.1\r\n" + fields + "\r\nrest",
      "POST /a HTTP/1.1\r\n" + fields + "Content-Length: 11\r\n\r\nhello worldrest",
      "POST /a HTTP/1.1\r\n" + fields +
          "Transfer-Encoding: chunked\r\n\r\n5;x=\"y;z\";w\r\nhello\r\n006\r\n world\r\n0\r\nT: u\r\nV: "
          "w\r\n\r\nrest",
      "\r\nPOST /a HTTP/1.1\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n0;l\r\n\r\nrest",
      "POST /a HTTP/1.1\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\nrest",
      "GET /a HTTP/1.1\r\n" + fields + "X : y\r\n\r\n",
  };
  Random random(7);
  for (const std::string& request : requests) {
    const Outcome whole = read(request, [&] { return request.size(); });
    EXPECT_EQ(whole, read(request, [] { return 1; })) << request;
    for (int i = 0; i < 200; ++i)
      EXPECT_EQ(whole, read(request, [&] { return random.below(12); })) << request;
    if (whole.stage == RequestReader::Stage::complete) {
      EXPECT_EQ(whole.taken, request.size() - 4) << "what follows is left alone";
      EXPECT_EQ(whole.headers[1], (std::pair<std::string, std::string>{"x-a", "b"}));
      EXPECT_TRUE(whole.body == "" || whole.body == "hello world");
    } else {
      EXPECT_EQ(whole.status, 400);
    }
  }
}

TEST(HttpRequestReader, ASinkThatRefusesEndsIt) {
  const auto reader = RequestReader::make(4000);
  reader->feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
  ASSERT_EQ(reader->stage(), RequestReader::Stage::body);
  EXPECT_EQ(reader->head().length, 5u);
  reader->set_sink([](std::string_view) { return Refusal{429, "no room"}; });
  reader->feed("he");
  EXPECT_EQ(reader->stage(), RequestReader::Stage::refused);
  EXPECT_EQ(reader->refusal().status, 429);
  EXPECT_EQ(reader->feed("llo"), 0u);
}

TEST(HttpBudget, IsSharedAndGivenBack) {
  MemoryBudget budget(100);
  MemoryShare one(budget);
  EXPECT_TRUE(one.grow(60));
  {
    MemoryShare two(budget);
    EXPECT_FALSE(two.grow(41));
    EXPECT_TRUE(two.grow(40));
    MemoryShare moved = std::move(two);
    two.release();  // nothing is given back twice
    EXPECT_EQ(budget.used(), 100u);
    EXPECT_FALSE(budget.has_room_for(1));
    moved.grow_anyway(50);
    EXPECT_EQ(budget.used(), 150u);
    EXPECT_FALSE(one.grow(1));
  }
  EXPECT_EQ(budget.used(), 60u);
  one = MemoryShare(budget);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_FALSE(one.grow(std::size_t(-1)));
  MemoryShare none;
  EXPECT_FALSE(none.grow(1));
}

TEST(HttpHandlerPool, TakesAsManyAsItHasRoomFor) {
  std::atomic<bool> open = false;
  std::atomic<int> ran = 0;
  const auto task = [&] {
    while (!open) std::this_thread::yield();
    ++ran;
  };
  HandlerPool pool(2, 1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.submit(task)) << i;
  EXPECT_TRUE(pool.is_full());
  EXPECT_FALSE(pool.submit(task));
  open = true;
  while (ran < 3) std::this_thread::yield();
  while (!pool.submit(task)) std::this_thread::yield();
  pool.stop();
  EXPECT_FALSE(pool.submit(task));
}

}  // namespace
}  // namespace furlong::fleet
