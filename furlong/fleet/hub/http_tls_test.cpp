// TLS. The certificates in testdata are self-signed for 127.0.0.1, ::1 and localhost, for a hundred years.

#include <gmock/gmock.h>

#include <filesystem>

#include "furlong/base/os/file.h"
#include "furlong/fleet/http.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/internal/http/testing.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

const std::filesystem::path testdata = "furlong/fleet/hub/testdata";

ServerReply echo(const ServerRequest& request) { return {.body = request.body + request.path}; }

HttpServerOptions with_tls() {
  HttpServerOptions options;
  options.certificate = testdata / "server.pem";
  options.key = testdata / "server_key.pem";
  return options;
}

std::unique_ptr<HttpServer> serve(const HttpServerOptions& options) {
  auto server = serve_http(options, nullptr, echo);
  EXPECT_TRUE(server) << server.error().text();
  return server ? std::move(*server) : nullptr;
}

Result<HttpResponse> ask(const HttpServer& server, const std::filesystem::path& trusted,
                         std::string body = "") {
  FURLONG_TRY(const auto curl, open_curl());
  return curl->send({.method = body.empty() ? "GET" : "POST",
                     .url = fmt::format("https://127.0.0.1:{}/x", server.port()),
                     .body = std::move(body),
                     .max_reply_bytes = 8u << 20,
                     .ca_file = trusted},
                    {});
}

TEST(HttpTls, AnswersTheAgentsClient) {
  const auto server = serve(with_tls());
  const auto got = ask(*server, testdata / "server.pem");
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "/x");
  const std::string large(3 << 20, 'l');
  const auto posted = ask(*server, testdata / "server.pem", large);
  ASSERT_TRUE(posted) << posted.error().text();
  EXPECT_EQ(posted->body, large + "/x");
  const auto refused = ask(*server, testdata / "other.pem");
  ASSERT_FALSE(refused) << "the client trusts another";
  EXPECT_EQ(refused.error().code(), Code::denied);
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().requests, 2u);
}

TEST(HttpTls, ABodyThatIsTooLargeGetsItsReply) {
  HttpServerOptions options = with_tls();
  options.most_body_bytes = 1000;
  const auto server = serve(options);
  const auto got = ask(*server, testdata / "server.pem", std::string(3 << 20, 'l'));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->status, 413);
}

TEST(HttpTls, PlainTextIsClosed) {
  const auto server = serve(with_tls());
  RawClient plain(server->port());
  plain.send(get("/"));
  EXPECT_THAT(plain.rest(), testing::Not(HasSubstr("HTTP/1.1")));
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().malformed, 1u);
  EXPECT_EQ(server->counts().requests, 0u);
  EXPECT_TRUE(ask(*server, testdata / "server.pem"));
}

TEST(HttpTls, AHandshakeThatStallsIsGivenUp) {
  HttpServerOptions options = with_tls();
  options.header_timeout_s = 0.3;
  const auto server = serve(options);
  RawClient silent(server->port()), half(server->port());
  half.send("\x16\x03\x01\x02");  // the begin of a record
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(half.is_closed());
  EXPECT_EQ(server->counts().timeouts, 2u);
}

TEST(HttpTls, OldVersionsAreRefused) {
  const auto server = serve(with_tls());
  RawClient old(server->port());
  // A ClientHello of TLS 1.1, in a record of 45 bytes.
  old.send(std::string("\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x02", 11) + std::string(32, 'r') +
           std::string("\x00\x00\x02\x00\x2f\x01\x00", 7));
  const std::string alert = old.rest();
  ASSERT_EQ(alert.size(), 7u);
  EXPECT_EQ(alert[0], '\x15');
  EXPECT_EQ(alert.substr(5), "\x02\x46") << "fatal: protocol_version";
}

TEST(HttpTls, WhatIsWrongWithTheFilesIsNamed) {
  const auto folder = TemporaryFolder::make("furlong-tls-test");
  ASSERT_TRUE(folder);
  const auto error = [](const std::filesystem::path& certificate, const std::filesystem::path& key) {
    HttpServerOptions options;
    options.certificate = certificate;
    options.key = key;
    const auto refused = serve_http(options, nullptr, echo);
    return refused ? Error(Code::internal, "it listens") : refused.error();
  };
  const auto certificate = testdata / "server.pem", key = testdata / "server_key.pem";
  const auto junk = folder->path() / "junk.pem";
  ASSERT_TRUE(system_files().write_atomic(junk, "no certificate\n"));

  const Error absent = error(folder->path() / "absent.pem", key);
  EXPECT_EQ(absent.code(), Code::unavailable);
  EXPECT_THAT(absent.text(), HasSubstr("absent.pem"));
  for (const Error& one : {error(certificate, ""), error("", key)}) {
    EXPECT_EQ(one.code(), Code::invalid);
    EXPECT_THAT(one.text(), HasSubstr("give both"));
  }
  const Error no_certificate = error(junk, key);
  EXPECT_EQ(no_certificate.code(), Code::invalid);
  EXPECT_THAT(no_certificate.text(), HasSubstr("junk.pem"));
  EXPECT_THAT(no_certificate.text(), HasSubstr("BEGIN CERTIFICATE"));
  const Error no_key = error(certificate, junk);
  EXPECT_EQ(no_key.code(), Code::invalid);
  EXPECT_THAT(no_key.text(), HasSubstr("junk.pem"));
  EXPECT_THAT(no_key.text(), HasSubstr("BEGIN PRIVATE KEY"));
  const Error other = error(certificate, testdata / "other_key.pem");
  EXPECT_EQ(other.code(), Code::invalid);
  EXPECT_THAT(other.text(), HasSubstr("other_key.pem: "));
  EXPECT_THAT(other.text(), HasSubstr("the key is not that of furlong/fleet/hub/testdata/server.pem"));
  const Error encrypted = error(certificate, testdata / "encrypted_key.pem");
  EXPECT_EQ(encrypted.code(), Code::invalid);
  EXPECT_THAT(encrypted.text(), HasSubstr("encrypted_key.pem: "));
  EXPECT_THAT(encrypted.text(), HasSubstr("without a passphrase"));
}

TEST(HttpTls, AChangedCertificateIsTaken) {
  const auto folder = TemporaryFolder::make("furlong-tls-test");
  ASSERT_TRUE(folder);
  HttpServerOptions options;
  options.certificate = folder->path() / "server.pem";
  options.key = folder->path() / "server_key.pem";
  const auto put = [&](const std::filesystem::path& from, const std::filesystem::path& to) {
    const auto bytes = system_files().read(testdata / from);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(system_files().write_atomic(to, *bytes));
  };
  put("server.pem", options.certificate);
  put("server_key.pem", options.key);
  const auto server = serve(options);
  EXPECT_TRUE(ask(*server, testdata / "server.pem"));
  // The certificate alone does not fit the key: the old pair stays until both are there.
  put("other.pem", options.certificate);
  put("other_key.pem", options.key);
  EXPECT_TRUE(comes_true([&] { return ask(*server, testdata / "other.pem").has_value(); }));
  EXPECT_FALSE(ask(*server, testdata / "server.pem"));
}

}  // namespace
}  // namespace furlong::fleet
