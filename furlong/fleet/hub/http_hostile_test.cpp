// What clients send that no honest one does.

#include <gmock/gmock.h>

#include <atomic>

#include "furlong/base/random.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/internal/http/testing.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

ServerReply path_of(const ServerRequest& request) { return {.body = request.path}; }

std::unique_ptr<HttpServer> serve(HttpHandler handler = path_of, const HttpServerOptions& options = {}) {
  auto server = serve_http(options, nullptr, std::move(handler));
  EXPECT_TRUE(server) << server.error().text();
  return server ? std::move(*server) : nullptr;
}

struct Shape {
  const char* name;
  std::string request;
};

/// Each is followed by a request that a server would answer if it read the first one otherwise.
TEST(HttpHostile, RequestsThatTwoServersReadDifferentlyAreRefused) {
  const std::string start = "POST /first HTTP/1.1\r\nHost: hub\r\n";
  const std::vector<Shape> shapes{
      {"length and chunked", start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"chunked and length", start + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"},
      {"unknown coding and length", start + "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"},
      {"length and unknown coding", start + "Content-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\nhello"},
      {"unknown coding", start + "Transfer-Encoding: gzip\r\n\r\nhello"},
      {"coding before chunked", start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"coding after chunked", start + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
      {"nearly chunked", start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"quoted chunked", start + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"},
      {"chunked with a form feed", start + "Transfer-Encoding: \x0b"
                                           "chunked\r\n\r\n0\r\n\r\n"},
      {"twice chunked", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"chunked, then identity",
       start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"},
      {"chunked in 1.0", "POST /first HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"two lengths", start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"},
      {"two equal lengths", start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
      {"a list of lengths", start + "Content-Length: 5, 5\r\n\r\nhello"},
      {"an empty length", start + "Content-Length:\r\n\r\nhello"},
      {"a signed length", start + "Content-Length: +5\r\n\r\nhello"},
      {"a negative length", start + "Content-Length: -5\r\n\r\nhello"},
      {"a hexadecimal length", start + "Content-Length: 0x5\r\n\r\nhello"},
      {"a length beyond 64 bits", start + "Content-Length: 18446744073709551621\r\n\r\nhello"},
      {"a blank before the colon", start + "Content-Length : 5\r\n\r\nhello"},
      {"a tab before the colon", start + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"},
      {"a folded line", start + "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"},
      {"a folded coding", start + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"},
      {"a folded first field", "POST /first HTTP/1.1\r\n Host: hub\r\n\r\n"},
      {"a field without a name", start + ": x\r\n\r\n"},
      {"a field without a colon", start + "Content-Length\r\n\r\n"},
      {"a bare LF in the header", start + "X: a\nContent-Length: 5\r\n\r\nhello"},
      {"bare LFs alone", "POST /first HTTP/1.1\nHost: hub\n\n"},
      {"a bare CR", start + "X: a\rContent-Length: 5\r\n\r\nhello"},
      {"a NUL", start + std::string("X: a\0b\r\n\r\n", 10)},
      {"a NUL in a name", start + std::string("X\0: a\r\n\r\n", 9)},
      {"no host", "GET /first HTTP/1.1\r\n\r\n"},
      {"two hosts", "GET /first HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"an unknown version", "GET /first HTTP/1.2\r\nHost: hub\r\n\r\n"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"HTTP/0.9", "GET /first\r\n\r\n"},
      {"a version in lower case", "GET /first http/1.1\r\nHost: hub\r\n\r\n"},
      {"two blanks", "GET  /first HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a blank in the target", "GET /fi rst HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a tab in the request line", "GET\t/first HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a method that is no word", "GE(T /first HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"no method", " /first HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"many empty lines", "\r\n\r\n\r\nGET /first HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a request to a proxy", "CONNECT hub:443 HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"the star", "OPTIONS * HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a file address", "GET file:///etc/passwd HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a relative path", "GET first HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a cut escape", "GET /fir%2 HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"no escape", "GET /fir%zz HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"an escaped NUL", "GET /fir%00st HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"an escaped line end", "GET /first?x=%0d%0aX:y HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"no UTF-8", "GET /%ff%fe HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"bytes beyond ASCII", "GET /\xc3\xa9 HTTP/1.1\r\nHost: hub\r\n\r\n"},
      {"a fragment", "GET /first#x HTTP/1.1\r\nHost: hub\r\n\r\n"},
  };
  std::atomic<int> handled = 0;
  const auto server = serve([&](const ServerRequest& request) {
    ++handled;
    return path_of(request);
  });
  std::uint64_t refused = 0;
  for (const Shape& shape : shapes) {
    RawClient client(server->port());
    client.send(shape.request + get("/smuggled"));
    const RawReply reply = client.reply();
    EXPECT_EQ(reply.status, 400) << shape.name << ": " << reply.body;
    EXPECT_EQ(reply.header("connection"), "close") << shape.name;
    EXPECT_EQ(client.rest(), "") << shape.name << ": nothing after it is answered";
    EXPECT_EQ(server->counts().malformed, ++refused) << shape.name;
  }
  EXPECT_EQ(handled, 0);
}

TEST(HttpHostile, BadChunksAreRefused) {
  const std::vector<Shape> shapes{
      {"no size", "\r\n\r\n"},
      {"no number", "xyz\r\nhello\r\n0\r\n\r\n"},
      {"a sign", "+5\r\nhello\r\n0\r\n\r\n"},
      {"a negative size", "-5\r\nhello\r\n0\r\n\r\n"},
      {"hexadecimal as in C", "0x5\r\nhello\r\n0\r\n\r\n"},
      {"a size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"},
      {"a blank before the size", " 5\r\nhello\r\n0\r\n\r\n"},
      {"a blank after the size", "5 \r\nhello\r\n0\r\n\r\n"},
      {"a bare LF after the size", "5\nhello\r\n0\r\n\r\n"},
      {"a size too small", "4\r\nhello\r\n0\r\n\r\n"},
      {"a size too large", "6\r\nhello\r\n0\r\n\r\n"},
      {"an extension without a name", "5;=x\r\nhello\r\n0\r\n\r\n"},
      {"a bare LF in a quoted extension", "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"},
      {"a NUL in a quoted extension", std::string("5;a=\"\0\"\r\nhello\r\n0\r\n\r\n", 21)},
      {"a length in the trailer", "5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n"},
      {"a trailer without a name", "5\r\nhello\r\n0\r\n: x\r\n\r\n"},
  };
  std::atomic<int> handled = 0;
  const auto server = serve([&](const ServerRequest& request) {
    ++handled;
    return path_of(request);
  });
  for (const Shape& shape : shapes) {
    RawClient client(server->port());
    client.send("POST /first HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n" + shape.request +
                get("/smuggled"));
    EXPECT_EQ(client.reply().status, 400) << shape.name;
    EXPECT_EQ(client.rest(), "") << shape.name;
  }
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(server->counts().malformed, shapes.size());
  EXPECT_EQ(server->counts().body_bytes, 0u);
}

TEST(HttpHostile, WhatLooksOddButIsRightIsTaken) {
  const auto server = serve();
  const std::vector<std::pair<std::string, std::string>> right{
      {"GET http://hub:80/a%20b?x=1 HTTP/1.1\r\nHost: hub\r\n\r\n", "/a b"},
      {"GET HTTP://hub HTTP/1.1\r\nHost: hub\r\n\r\n", "/"},
      {"GET /..%2f../%2e%2e HTTP/1.1\r\nHost: hub\r\n\r\n", "/../../.."},
      {"GET /%2541 HTTP/1.1\r\nHost: hub\r\n\r\n", "/%41"},
      {"GET /%C3%A9 HTTP/1.1\r\nHost: hub\r\n\r\n", "/\xc3\xa9"},
      {"GET //x HTTP/1.1\r\nHost: hub\r\n\r\n", "//x"},
      {"\r\nGET /x HTTP/1.1\r\nhOST:hub\r\n\r\n", "/x"},
      {"BREW /x HTTP/1.1\r\nHost: hub\r\nX:\xe9\r\n\r\n", "/x"},
      {"POST /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", "/x"},
      {"POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 0005\r\n\r\nhello", "/x"},
  };
  RawClient client(server->port());
  for (const auto& [request, path] : right) {
    const RawReply reply = client.exchange(request);
    EXPECT_EQ(reply.status, 200) << request;
    EXPECT_EQ(reply.body, path) << request;
  }
}

TEST(HttpHostile, GarbageHurtsNobody) {
  const auto server = serve();
  Random random(20260301);
  const std::string good = post("/x?a=b", "hello", "Content-Encoding: identity\r\n");
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    if (round % 2 == 0) {
      for (std::uint64_t i = 0, n = random.below(3000); i < n; ++i)
        bytes += static_cast<char>(random.below(256));
    } else {  // nearly right
      bytes = good + good;
      for (std::uint64_t i = 0, n = 1 + random.below(4); i < n; ++i)
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    RawClient client(server->port());
    ASSERT_TRUE(client.is_connected()) << round;
    client.send(bytes);
    client.end_sending();
    client.rest();  // whatever it says, it closes
  }
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().body_bytes, 0u);
  EXPECT_EQ(server->counts().failed, 0u);
  EXPECT_EQ(RawClient(server->port()).exchange(good).status, 200);
}

TEST(HttpHostile, ClientsThatLeaveGiveTheirMemoryBack) {
  std::atomic<int> handled = 0;
  const auto server = serve([&](const ServerRequest& request) {
    ++handled;
    return path_of(request);
  });
  const std::string half =
      "POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 100000\r\n\r\n" + std::string(50'000, 'x');
  const std::string chunk = "POST /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\nC350\r\n";
  for (const std::string& cut : {half, chunk + std::string(50'000, 'x'), chunk, get("/").substr(0, 20)}) {
    RawClient client(server->port());
    client.send(cut);
    if (cut.size() > 1000) {
      EXPECT_TRUE(comes_true([&] { return server->counts().body_bytes >= 50'000; }));
    }
    client.end_sending();
    EXPECT_TRUE(client.is_closed()) << "half a request is not answered";
  }
  {
    RawClient client(server->port());
    client.send(half);
    EXPECT_TRUE(comes_true([&] { return server->counts().body_bytes >= 50'000; }));
  }  // closed
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().body_bytes, 0u);
  EXPECT_EQ(handled, 0);
}

}  // namespace
}  // namespace furlong::fleet
