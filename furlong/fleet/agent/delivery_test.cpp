#include "furlong/fleet/agent/delivery.h"

#include <gmock/gmock.h>

#include <set>

#include "furlong/base/os/file.h"
#include "furlong/fleet/agent/identity.h"
#include "furlong/fleet/agent/internal/testing.h"
#include "furlong/fleet/agent/manifest.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

class DeliveryTest : public testing::Test {
 protected:
  DeliveryTest() {
    hub.url = "https://hub";
    spool = std::move(*Spool::open(folder.path() / "spool.sqlite"));
  }
  void records(int count) {
    std::vector<NewRecord> list;
    for (int i = 0; i < count; ++i) {
      const std::string id = "id-" + std::to_string(++made);
      list.push_back({.id = id, .line = R"({"id":")" + id + R"("})", .digest = id});
    }
    EXPECT_TRUE(spool->take_in("file", {.offset = static_cast<std::uint64_t>(made)}, list, 0));
  }
  Delivery& delivery() {
    if (!object)
      object = std::make_unique<Delivery>(hub, key, http, *spool, files, clock, 1,
                                          [this](std::string text) { notes.push_back(std::move(text)); });
    return *object;
  }
  /// The hub takes all, and checks what it gets.
  HttpResponse good(const HttpRequest& request) {
    const auto batch = parse_record_batch(request.body);
    EXPECT_TRUE(batch) << batch.error().text();
    const auto of = [&](std::string_view name) {
      for (const auto& [header, value] : request.headers)
        if (header == name) return value;
      return std::string();
    };
    EXPECT_EQ(of(machine_header), key.public_key.id());
    EXPECT_TRUE(verify_body(of("Content-Type"), request.body, of(signature_header), key.public_key));
    BatchReply reply;
    for (const std::string& line : batch->lines) reply.accepted.push_back(line.substr(7, line.size() - 9));
    return {.status = 200, .body = print(reply)};
  }
  std::int64_t pending() { return spool->counts()->pending; }
  void wait(double s) { clock.advance_ns(static_cast<std::int64_t>(s * 1e9)); }

  TemporaryFolder folder = std::move(*TemporaryFolder::make("delivery"));
  FakeClock clock;
  FakeFiles files;
  testing_support::FakeHttp http;
  KeyPair key = *KeyPair::from_seed(Bytes(32, 7));
  HubConfig hub;
  std::unique_ptr<Spool> spool;
  std::unique_ptr<Delivery> object;
  std::vector<std::string> notes;
  int made = 0;
};

TEST_F(DeliveryTest, SignedAndGoneOnceTheHubHasIt) {
  http.answer = [&](const HttpRequest& request) { return good(request); };
  records(3);
  EXPECT_EQ(delivery().step({}), 0);
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(delivery().state().state, "ok");
  EXPECT_GT(delivery().step({}), 0);
  EXPECT_EQ(http.requests.size(), 1u) << "nothing to send";
}

TEST_F(DeliveryTest, ReportsWhatItFollowsWhenThatChangesAndOnceAnHour) {
  std::vector<RecordBatch> got;
  http.answer = [&](const HttpRequest& request) {
    got.push_back(*parse_record_batch(request.body));
    return good(request);
  };
  delivery().step({});
  EXPECT_EQ(got.size(), 0u) << "nothing was told";
  delivery().tell({.agent = "0.1.0", .manifest = "6", .canary = true});
  delivery().step({});
  delivery().step({});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].lines.size(), 0u);
  EXPECT_EQ(got[0].manifest, "6");
  EXPECT_TRUE(got[0].canary);
  delivery().tell({.agent = "0.1.0", .manifest = "7"});
  delivery().step({});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].manifest, "7");
  wait(3601);
  delivery().step({});
  EXPECT_EQ(got.size(), 3u);
}

TEST_F(DeliveryTest, AReportThatIsRefusedKeepsNoRecordWaiting) {
  http.answer = [&](const HttpRequest& request) {
    return parse_record_batch(request.body)->lines.empty() ? HttpResponse{.status = 400, .body = "a what?"}
                                                           : good(request);
  };
  records(2);
  delivery().tell({.agent = "0.1.0"});
  delivery().step({});
  EXPECT_EQ(pending(), 0);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("a what?"));
}

TEST_F(DeliveryTest, AReportThatDoesNotArriveIsSentAgain) {
  http.answer = [&](const HttpRequest&) { return HttpResponse{.status = 503}; };
  delivery().tell({.agent = "0.1.0", .manifest = "7"});
  EXPECT_GT(delivery().step({}), 0);
  EXPECT_EQ(delivery().state().state, "retrying");
  wait(301);
  http.answer = [&](const HttpRequest& request) { return good(request); };
  delivery().step({});
  EXPECT_EQ(http.requests.size(), 2u);
  EXPECT_EQ(delivery().state().state, "ok");
}

TEST_F(DeliveryTest, WhateverTheHubSaysNothingIsLost) {
  records(2);
  const std::vector<Result<HttpResponse>> answers{
      fail(Code::unavailable, "closed"),
      fail(Code::timeout, "slow"),
      fail(Code::exhausted, "a reply without end"),
      HttpResponse{.status = 500, .body = "oops"},
      HttpResponse{.status = 404},
      HttpResponse{.status = 200},
      HttpResponse{.status = 200, .body = "[]"},
      HttpResponse{.status = 302},
      HttpResponse{.status = 200, .body = print(BatchReply{.accepted = {"foreign"}})}};
  std::string first_body;
  for (const auto& answer : answers) {
    http.answer = [&](const HttpRequest&) { return answer; };
    EXPECT_GT(delivery().step({}), 0);
    EXPECT_EQ(pending(), 2);
    EXPECT_EQ(delivery().state().state, "retrying");
    const std::size_t sent = http.requests.size();
    delivery().step({});
    EXPECT_EQ(http.requests.size(), sent) << "not before its time";
    wait(301);
    if (first_body.empty()) first_body = http.requests.back().body;
    if (answer && answer->body.find("foreign") != std::string::npos) continue;
    EXPECT_EQ(http.requests.back().body, first_body) << "the same bytes each time";
  }
  http.answer = [&](const HttpRequest& request) { return good(request); };
  delivery().step({});
  EXPECT_EQ(pending(), 0);
}

TEST_F(DeliveryTest, WaitsLongerEachTimeWithJitterAndHonoursTheHubsWish) {
  records(1);
  double ceiling = 1;
  for (int i = 0; i < 12; ++i) {
    const double wait_s = delivery().step({});
    EXPECT_GE(wait_s, ceiling / 2);
    EXPECT_LE(wait_s, ceiling);
    ceiling = std::min(300.0, ceiling * 2);
    wait(wait_s);
  }
  http.answer = [](const HttpRequest&) {
    return HttpResponse{.status = 429, .headers = {{"retry-after", "1234"}}};
  };
  EXPECT_DOUBLE_EQ(delivery().step({}), 1234);
  wait(1235);
  http.answer = [](const HttpRequest&) {
    return HttpResponse{.status = 429, .headers = {{"retry-after", "99999999"}}};
  };
  EXPECT_LE(delivery().step({}), 3600);
}

TEST_F(DeliveryTest, OneSpoiltRecordDoesNotBlockTheOthers) {
  records(9);
  http.answer = [&](const HttpRequest& request) -> Result<HttpResponse> {
    if (request.body.find("\"id-4\"") != std::string::npos) return HttpResponse{.status = 400, .body = "bad"};
    return good(request);
  };
  for (int i = 0; i < 60; ++i) {
    delivery().step({});
    wait(301);
  }
  EXPECT_EQ(pending(), 1);
  EXPECT_EQ(spool->counts()->delivered, 8);
}

/// 408: the way to the hub is too slow for so much at once. The same bytes again would fare no better.
TEST_F(DeliveryTest, ABatchThatCameTooSlowlyIsSentInSmallerOnes) {
  records(64);
  std::size_t most = 1000;
  http.answer = [&](const HttpRequest& request) -> Result<HttpResponse> {
    const std::size_t lines = parse_record_batch(request.body)->lines.size();
    most = std::min(most, lines);
    if (lines > 8) return HttpResponse{.status = 408, .body = "too slow"};
    return good(request);
  };
  for (int i = 0; i < 60; ++i) {
    delivery().step({});
    wait(301);
  }
  EXPECT_LE(most, 8u);
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(spool->counts()->delivered, 64);
}

TEST_F(DeliveryTest, EnrolsOnceWithItsToken) {
  hub.enrol_token_file = "/token";
  EXPECT_TRUE(files.write_atomic("/token", "secret\n"));
  int enrolments = 0;
  http.answer = [&](const HttpRequest& request) -> Result<HttpResponse> {
    if (!request.url.ends_with("/v1/enrol")) return good(request);
    EXPECT_EQ(parse_enrol_request(request.body)->token, "secret");
    if (++enrolments == 1) return HttpResponse{.status = 403, .body = "no"};
    return HttpResponse{.status = 200, .body = R"({"schema":1,"machine":")" + key.public_key.id() + "\"}"};
  };
  records(1);
  EXPECT_GE(delivery().step({}), 300) << "asks seldom";
  EXPECT_EQ(delivery().state().state, "denied");
  wait(601);
  delivery().step({});
  EXPECT_EQ(pending(), 0);
  object.reset();
  records(1);
  delivery().step({});
  EXPECT_EQ(enrolments, 2) << "remembered";
}

TEST_F(DeliveryTest, ANewTokenEnrolsAgainAndAnOldOneDoesNoHarm) {
  hub.enrol_token_file = "/token";
  EXPECT_TRUE(files.write_atomic("/token", "one"));
  std::set<std::string> good_tokens{"one"};
  bool knows = false;
  int enrolments = 0;
  http.answer = [&](const HttpRequest& request) -> Result<HttpResponse> {
    if (!request.url.ends_with("/v1/enrol")) return knows ? good(request) : HttpResponse{.status = 401};
    ++enrolments;
    if (good_tokens.erase(parse_enrol_request(request.body)->token) == 0) return HttpResponse{.status = 403};
    knows = true;
    return HttpResponse{.status = 200, .body = R"({"schema":1,"machine":")" + key.public_key.id() + "\"}"};
  };
  delivery().step({});
  EXPECT_TRUE(delivery().state().enrolled);
  EXPECT_EQ(delivery().state().state, "ok") << "also with nothing to send";
  EXPECT_TRUE(files.remove("/token"));
  records(1);
  delivery().step({});
  EXPECT_EQ(pending(), 0) << "the used token is not asked for";

  knows = false;
  records(1);
  delivery().step({});
  EXPECT_EQ(delivery().state().state, "denied");
  EXPECT_THAT(delivery().state().error, HasSubstr("enrol it with a new token"));
  EXPECT_TRUE(files.write_atomic("/token", "two"));
  good_tokens = {"two"};
  wait(601);
  delivery().step({});
  EXPECT_EQ(pending(), 0) << "the new token was taken";
  EXPECT_EQ(enrolments, 2);

  knows = false;
  records(1);
  delivery().step({});
  knows = true;  // it was the hub's mistake, and the token is used
  wait(601);
  delivery().step({});
  EXPECT_EQ(enrolments, 3);
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(delivery().state().state, "ok");
}

TEST_F(DeliveryTest, ABatchThatTimesOutTwiceIsHalved) {
  records(8);
  std::size_t most = 3;  // what gets through in time
  http.answer = [&](const HttpRequest& request) -> Result<HttpResponse> {
    EXPECT_GE(request.timeout_s, 600);
    EXPECT_GT(request.stall_timeout_s, 0);
    if (parse_record_batch(request.body)->lines.size() > most) return fail(Code::timeout, "slow");
    return good(request);
  };
  for (int i = 0; i < 20; ++i) {
    delivery().step({});
    wait(301);
  }
  EXPECT_EQ(pending(), 0);
}

TEST_F(DeliveryTest, ADateAsRetryAfterIsOurOwnWait) {
  records(1);
  http.answer = [](const HttpRequest&) {
    return HttpResponse{.status = 503, .headers = {{"retry-after", "Fri, 31 Dec 2027 23:59:59 GMT"}}};
  };
  EXPECT_LE(delivery().step({}), 1);
}

TEST(AgentSeed, DiffersByMachineAndByTime) {
  FakeClock clock;
  const KeyPair one = *KeyPair::from_seed(Bytes(32, 1)), two = *KeyPair::from_seed(Bytes(32, 2));
  const std::uint64_t first = agent_seed(one.public_key, clock, 0);
  EXPECT_NE(first, agent_seed(two.public_key, clock, 0));
  EXPECT_NE(first, agent_seed(one.public_key, clock, 1));
  clock.advance_ns(1'000'000);
  EXPECT_NE(first, agent_seed(one.public_key, clock, 0));
}

TEST(MachineKey, MadeOnceAndNotReplaced) {
  FakeFiles files;
  const auto first = machine_key(files, "/key");
  ASSERT_TRUE(first);
  EXPECT_EQ(machine_key(files, "/key")->public_key, first->public_key);
  EXPECT_TRUE(files.write_atomic("/key", "nonsense"));
  EXPECT_EQ(machine_key(files, "/key").error().code(), Code::corrupt);
}

class Verifier : public ManifestVerifier {
 public:
  Result<VerifiedManifest> verify(std::string_view envelope) override {
    if (envelope == "bad" && refuses) return fail(Code::denied, "a wrong key");
    return manifest;
  }
  Result<VerifiedManifest> standing() override { return manifest; }
  VerifiedManifest manifest;
  bool refuses = true;
};

TEST(Manifest, WrittenAsItIsWhenItWasVerified) {
  testing_support::FakeHttp http;
  FakeFiles files;
  Verifier verifier;
  std::vector<std::string> notes;
  HubManifestSource source({.url = "https://hub"}, http);
  ManifestFollower follower(source, verifier, files, "/data",
                            [&](std::string text) { notes.push_back(std::move(text)); });
  http.answer = [](const HttpRequest&) {
    return HttpResponse{.status = 200, .headers = {{"etag", "\"1\""}}, .body = "good"};
  };
  verifier.manifest = {.version = "7", .tuning = "{\"a\": 1}", .tuning_override = {}};
  ASSERT_TRUE(follower.step({}));
  EXPECT_EQ(*files.read("/data/tuning.json"), "{\"a\": 1}");
  EXPECT_FALSE(files.exists("/data/override.json"));
  ASSERT_TRUE(files.write_atomic("/data/tuning.json", "{\"a\""));
  ASSERT_TRUE(follower.step({}));
  EXPECT_EQ(*files.read("/data/tuning.json"), "{\"a\": 1}") << "a torn file is written anew";
  ASSERT_EQ(notes.size(), 2u);
  notes.pop_back();
  ASSERT_TRUE(follower.step({}));
  EXPECT_EQ(notes.size(), 1u) << "one event a change";
  EXPECT_EQ(http.requests.back().headers.at(0).second, "\"1\"");
  http.answer = [](const HttpRequest&) { return HttpResponse{.status = 304}; };
  EXPECT_TRUE(follower.step({}));
  http.answer = [](const HttpRequest&) {
    return HttpResponse{.status = 200, .headers = {{"etag", "\"2\""}}, .body = "bad"};
  };
  EXPECT_FALSE(follower.step({}));
  EXPECT_FALSE(follower.step({}));
  EXPECT_EQ(http.requests.back().headers.at(0).second, "\"2\"");
  http.answer = [](const HttpRequest&) { return HttpResponse{.status = 304}; };
  EXPECT_FALSE(follower.step({})) << "refused again, and not sent again";
  verifier.refuses = false;
  EXPECT_TRUE(follower.step({})) << "and taken once what was amiss here is mended";
  EXPECT_EQ(*files.read("/data/tuning.json"), "{\"a\": 1}");
  http.answer = [](const HttpRequest&) { return HttpResponse{.status = 200, .body = "good"}; };
  verifier.manifest = {.version = "8", .tuning = {}, .tuning_override = "{}"};
  EXPECT_TRUE(follower.step({}));
  EXPECT_FALSE(files.exists("/data/tuning.json"));
  EXPECT_EQ(follower.version(), "8");
}

}  // namespace
}  // namespace furlong::fleet
