#include "furlong/fleet/agent/manifest.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "furlong/base/os/file.h"

namespace furlong::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeSource : public ManifestSource {
 public:
  Result<std::optional<std::string>> fetch(const std::stop_token&) override {
    if (away) return fail(Code::unavailable, "no hub");
    return next;
  }
  void taken() override { next.reset(); }
  bool away = false;
  std::optional<std::string> next = "body";
};

class FakeVerifier : public ManifestVerifier {
 public:
  Result<VerifiedManifest> verify(std::string_view) override {
    ++verified;
    return standing();
  }
  Result<VerifiedManifest> standing() override {
    if (unknown) return fail(Code::corrupt, "a torn state");
    return now;
  }
  VerifiedManifest now{.version = "7", .tuning = "{}\n", .tuning_override = "[]\n", .note = {}};
  bool unknown = false;
  int verified = 0;
};

class FollowerTest : public testing::Test {
 protected:
  Status step() { return follower.step({}); }
  FakeSource source;
  FakeVerifier verifier;
  FakeFiles files;
  std::vector<std::string> notes;
  ManifestFollower follower{source, verifier, files, "/data",
                            [this](std::string text) { notes.push_back(std::move(text)); }};
};

TEST_F(FollowerTest, WhatLapsesIsWithdrawnAlsoWithoutTheHub) {
  ASSERT_TRUE(step());
  EXPECT_EQ(*files.read("/data/tuning.json"), "{}\n");
  EXPECT_EQ(*files.read("/data/override.json"), "[]\n");
  notes.clear();
  source.away = true;
  verifier.now = {.version = "7", .tuning = {}, .tuning_override = {}, .note = "the manifest expired"};
  for (int look = 0; look < 3; ++look) EXPECT_FALSE(step()) << "the hub is away, and that is said";
  EXPECT_FALSE(files.exists("/data/tuning.json"));
  EXPECT_FALSE(files.exists("/data/override.json"));
  EXPECT_THAT(notes,
              ElementsAre("manifest 7: the manifest expired; workers race in full",
                          "manifest 7: tuning.json is no more", "manifest 7: override.json is no more"));
}

TEST_F(FollowerTest, WithoutKnowingWhatStandsTheFilesStay) {
  ASSERT_TRUE(step());
  verifier.unknown = true;
  EXPECT_EQ(step().error().code(), Code::corrupt);
  EXPECT_TRUE(files.exists("/data/tuning.json"));
}

TEST_F(FollowerTest, AFileThatCouldNotBeWrittenIsWrittenAtTheNextLook) {
  files.fault = [](std::string_view operation, const std::filesystem::path&) -> Status {
    return operation == "write" ? Status(fail(Code::exhausted, "no space left")) : Status();
  };
  EXPECT_EQ(step().error().code(), Code::exhausted);
  files.fault = {};
  ASSERT_TRUE(step());
  EXPECT_EQ(verifier.verified, 1) << "the hub had nothing new to say";
  EXPECT_TRUE(files.exists("/data/tuning.json"));
}

/// Sends what looks like the beginning of a long reply, a byte now and then, until it is let go.
class Trickle {
 public:
  Trickle() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 4), 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~Trickle() {
    thread_.request_stop();
    thread_.join();
    close(socket_);
  }
  std::string url;

 private:
  void serve(const std::stop_token& stop) const {
    pollfd waits{.fd = socket_, .events = POLLIN, .revents = 0};
    while (!stop.stop_requested() && poll(&waits, 1, 50) != 1) continue;
    if (stop.stop_requested()) return;
    const int client = accept(socket_, nullptr, nullptr);
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{";
    bool there = send(client, head.data(), head.size(), MSG_NOSIGNAL) > 0;
    while (there && !stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      there = send(client, " ", 1, MSG_NOSIGNAL) > 0;
    }
    close(client);
  }
  int socket_;
  std::jthread thread_;
};

TEST(Follower, ASlowBodyIsGivenUpAndWhatWasGoodStays) {
  Trickle hub;
  const auto http = open_curl();
  ASSERT_TRUE(http) << http.error().text();
  HubManifestSource source({.url = hub.url}, **http, 0.3);
  FakeVerifier verifier;
  FakeFiles files;
  ManifestFollower follower(source, verifier, files, "/data", [](const std::string&) {});
  const Status looked = follower.step({});
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code(), Code::timeout) << looked.error().text();
  EXPECT_THAT(looked.error().text(), HasSubstr(hub.url));
  EXPECT_EQ(verifier.verified, 0) << "nothing of a part is looked at";
  EXPECT_EQ(*files.read("/data/tuning.json"), "{}\n");
}

TEST(Follower, ALinkInPlaceOfTheTuningIsNotFollowed) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("follower"));
  const auto victim = folder.path() / "victim";
  ASSERT_TRUE(system_files().write_atomic(victim, "precious"));
  std::filesystem::create_symlink(victim, folder.path() / "tuning.json");
  FakeSource source;
  FakeVerifier verifier;
  ManifestFollower follower(source, verifier, system_files(), folder.path(), [](const std::string&) {});
  const Status done = follower.step({});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("a symbolic link stands there"));
  EXPECT_EQ(*system_files().read(victim), "precious");
}

}  // namespace
}  // namespace furlong::fleet
