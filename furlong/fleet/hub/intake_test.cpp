// Every refusal of docs/formats/record-batch.md, by name.

#include "furlong/fleet/hub/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/fleet/hub/internal/testing.h"

namespace furlong::fleet {
namespace {

using hub_testing::error_of;
using hub_testing::header;
using hub_testing::json_of;
using hub_testing::Sender;
using hub_testing::start_us;
using hub_testing::TestHub;
using ::testing::HasSubstr;

BatchReply reply_of(const ServerReply& reply) {
  const auto read = parse_batch_reply(reply.body);
  EXPECT_TRUE(read) << reply.status << " " << reply.body;
  return read ? *read : BatchReply{};
}

class Taking : public ::testing::Test {
 protected:
  Taking() { fleet.know(box); }
  /// What the hub says of one record.
  std::string why_refused(const std::string& line) {
    const BatchReply reply = reply_of(fleet.send(box.request(box.body({line}))));
    EXPECT_TRUE(reply.accepted.empty() && reply.duplicate.empty());
    return reply.refused.size() == 1 ? reply.refused[0].why : "not refused";
  }
  std::string why_refused(const Json& json) { return why_refused(json_line(json)); }
  std::uint64_t races() { return fleet.store()->totals()->races; }

  TestHub fleet;
  Sender box{1};
};

TEST_F(Taking, AcceptedThenDuplicate) {
  const Json record = box.record();
  const std::string body = box.body({json_line(record)}, "0.1.0");
  const ServerReply first = fleet.send(box.request(body));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(reply_of(first).accepted, std::vector<std::string>{record["id"]});
  const BatchReply again = reply_of(fleet.send(box.request(body)));
  EXPECT_EQ(again.duplicate, std::vector<std::string>{record["id"]});
  EXPECT_EQ(races(), 1u);
  const auto stored = *fleet.store()->race(record["id"].get<std::string>());
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->batch.body, body) << "the very bytes that were signed";
  EXPECT_EQ(stored->batch.signature, sign_body(batch_media_type, body, box.key));
  const Machine machine = **fleet.store()->machine(box.id());
  EXPECT_EQ(machine.accepted, 1u);
  EXPECT_EQ(machine.duplicate, 1u);
  EXPECT_EQ(machine.agent, "0.1.0");
  EXPECT_EQ(machine.seen_us, fleet.clock.wall_us());
}

TEST_F(Taking, AReportOfNoRecords) {
  const BatchReply reply = reply_of(fleet.send(box.request(box.body({}, "0.2.0"))));
  EXPECT_EQ(reply, BatchReply{});
  EXPECT_EQ((**fleet.store()->machine(box.id())).agent, "0.2.0");
}

TEST_F(Taking, ReorderedBatchesGiveTheSame) {
  const std::string early = json_line(box.record("00f1e2d3c4b5a697", start_us - 1'000'000));
  const std::string late = json_line(box.record("00f1e2d3c4b5a697", start_us));
  const BatchReply newer = reply_of(fleet.send(box.request(box.body({late}))));
  const BatchReply older = reply_of(fleet.send(box.request(box.body({early}))));
  EXPECT_EQ(newer.accepted.size(), 1u);
  EXPECT_EQ(older.duplicate.size(), 1u) << "the later race of the epoch counts, whatever came first";
  EXPECT_EQ(races(), 1u);
}

TEST_F(Taking, EachLineIsJudgedOnItsOwn) {
  const Json good = box.record("0000000000000001"), other = box.record("0000000000000002");
  Json bad = box.record("0000000000000003");
  bad["rate"] = "fast";
  const BatchReply reply =
      reply_of(fleet.send(box.request(box.body({json_line(good), json_line(bad), "{}", json_line(other)}))));
  EXPECT_EQ(reply.accepted, (std::vector<std::string>{good["id"], other["id"]}));
  ASSERT_EQ(reply.refused.size(), 2u);
  EXPECT_EQ(reply.refused[0].id, bad["id"]);
  EXPECT_THAT(reply.refused[0].why, HasSubstr("rate"));
  EXPECT_EQ(reply.refused[1].id, "line 4") << "the body's line, since it has no id";
  EXPECT_THAT((**fleet.store()->machine(box.id())).last_refusal, HasSubstr("schema"));
}

TEST_F(Taking, OneIdTwiceHasOneFate) {
  const std::string line = json_line(box.record());
  const ServerReply reply = fleet.send(box.request(box.body({line, line, "1", "2"})));
  EXPECT_EQ(reply_of(reply).accepted.size(), 1u);
  EXPECT_EQ(reply_of(reply).refused.size(), 2u);
}

TEST_F(Taking, FromTheFuture) {
  EXPECT_THAT(why_refused(box.record("0000000000000001", start_us + 601'000'000)),
              HasSubstr("ts: 2026-03-01T12:10:01Z is 601 s ahead of the hub's clock (2026-03-01T12:00:00Z)"));
  const std::string near = json_line(box.record("0000000000000002", start_us + 600'000'000));
  const std::string old = json_line(box.record("0000000000000003", 1'000'000));
  EXPECT_EQ(reply_of(fleet.send(box.request(box.body({near, old})))).accepted.size(), 2u)
      << "a clock that is far behind is the machine's own affair";
}

TEST_F(Taking, AnotherMachinesRecord) {
  Json record = box.record();
  record["machine"] = Sender(2).id();
  EXPECT_THAT(why_refused(record), HasSubstr("machine: '" + Sender(2).id() + "' is not the sender"));
}

TEST_F(Taking, MissingKeys) {
  for (const char* key :
       {"id", "machine", "slot", "source", "ts", "card", "program", "variants", "verdict"}) {
    Json record = box.record();
    record.erase(key);
    EXPECT_THAT(why_refused(record), HasSubstr(key));
  }
}

TEST_F(Taking, DeepJson) {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_THAT(why_refused(deep), HasSubstr("nest"));
  Json record = box.record();
  Json nested = 1;
  for (int i = 0; i < 20; ++i) nested = Json{{"x", nested}};
  record["extra"] = nested;
  EXPECT_THAT(why_refused(record), HasSubstr("nest"));
}

TEST_F(Taking, WrongEncodings) {
  EXPECT_THAT(why_refused(std::string("{\"schema\":1,\"id\":\"\xff\xfe\"}")), HasSubstr("UTF-8"));
  EXPECT_THAT(why_refused(std::string("\xef\xbb\xbf{}")), HasSubstr("record"));
  EXPECT_THAT(why_refused(std::string("{\"a\":NaN}")), HasSubstr("record"));
  EXPECT_THAT(why_refused(std::string("{\"id\":\"a\",\"id\":\"b\"}")), HasSubstr("id"));
  Json record = box.record();
  record["card"] = "x\x1b[2Jy";
  EXPECT_THAT(why_refused(record), HasSubstr("card"));
  record = box.record();
  record["id"] = "\x1b[2J\xc2\x9b" + std::string(100, 'x');
  const BatchReply reply = reply_of(fleet.send(box.request(box.body({json_line(record)}))));
  ASSERT_EQ(reply.refused.size(), 1u);
  EXPECT_LE(reply.refused[0].id.size(), 64u);
  EXPECT_EQ(reply.refused[0].id.find('\x1b'), std::string::npos) << "what goes into logs has no controls";
}

TEST_F(Taking, AReplyIsBoundedWhateverIsRefused) {
  std::vector<std::string> lines;
  for (int i = 0; i < 10'000; ++i)
    lines.push_back(json_line(Json{{"id", fmt::format("{:0>60}", i)}, {"schema", std::string(300, 'x')}}));
  const ServerReply reply = fleet.send(box.request(box.body(lines)));
  EXPECT_EQ(reply.status, 200);
  EXPECT_LT(reply.body.size(), 2u << 20);
  EXPECT_EQ(reply_of(reply).refused.size(), 10'000u);
}

// ---- the batch as a whole ----

TEST_F(Taking, MalformedBatches) {
  const auto refused = [&](const std::string& body, int status, const char* words) {
    const ServerReply reply = fleet.send(box.request(body));
    EXPECT_EQ(reply.status, status) << body.substr(0, 200);
    EXPECT_THAT(error_of(reply), HasSubstr(words));
  };
  const std::string line = json_line(box.record());
  const std::string good = box.body({line});
  refused("", 400, "empty");
  refused(good.substr(0, good.size() - 1), 400, "batch line 2 at byte");
  refused(good + "\n", 400, "batch line 3 at byte");
  refused(good + line + "\n", 400, "announces only 1");
  refused("{}\n", 400, "batch line 1");
  refused("no json\n", 400, "batch line 1");
  refused(box.body({line, std::string((1u << 20) + 1, ' ')}), 413, "batch line 3 has 1048577 bytes");
  Json head{{"schema", 2}, {"batch", box.record_id()}, {"machine", box.id()}, {"records", 0}};
  refused(json_line(head) + "\n", 422, "found schema 2, expected 1");
  head["schema"] = 1;
  head["records"] = 10'001;
  refused(json_line(head) + "\n", 413, "10000 are the most");
  head["records"] = 0;
  head["machine"] = Sender(2).id();
  refused(json_line(head) + "\n", 400, "is not the sender");
  EXPECT_EQ(fleet.store()->totals()->batches, 0u);
  EXPECT_EQ(fleet.faults->adds, 0);
}

TEST_F(Taking, TooLarge) {
  const ServerReply reply = fleet.send(box.request(std::string((8u << 20) + 1, 'x')));
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(error_of(reply), HasSubstr("8388608 are the most"));
}

TEST_F(Taking, WrongHeads) {
  const ServerRequest good = box.request(box.body({}));
  const auto changed = [&](const char* name, const std::string& value) {
    ServerRequest request = good;
    for (auto& [key, text] : request.headers)
      if (key == name) text = value;
    return fleet.send(request).status;
  };
  EXPECT_EQ(changed("content-type", "application/json"), 415);
  EXPECT_EQ(changed("content-type", ""), 415);
  EXPECT_EQ(changed("content-type", "Application/vnd.furlong.record-batch.V1; charset=utf-8"), 200);
  EXPECT_EQ(changed("furlong-machine", ""), 400);
  EXPECT_EQ(changed("furlong-machine", "7DD9D66144961473"), 400);
  EXPECT_EQ(changed("furlong-signature", std::string(127, '0')), 400);
  EXPECT_EQ(changed("furlong-signature", std::string(128, '0')), 403);
}

TEST_F(Taking, SignedByNobodyKnown) {
  Sender stranger(2);
  const ServerReply reply = fleet.send(stranger.request(stranger.body({json_line(stranger.record())})));
  EXPECT_EQ(reply.status, 403);
  EXPECT_THAT(error_of(reply), HasSubstr("is not enrolled here: give its agent a token (furlong hub token)"));
  EXPECT_EQ(json_of(reply)["error"]["code"], "denied");
}

TEST_F(Taking, ChangedBytes) {
  const std::string body = box.body({json_line(box.record())});
  ServerRequest request = box.request(body);
  request.body[body.size() / 2] ^= 1;
  const ServerReply reply = fleet.send(request);
  EXPECT_EQ(reply.status, 403);
  EXPECT_THAT(error_of(reply), HasSubstr("the signature is not machine"));
  EXPECT_EQ(fleet.hub().metrics().refusals("bad-signature"), 1u);
  EXPECT_EQ(fleet.faults->adds, 0) << "nothing unauthenticated comes near the store";
}

TEST_F(Taking, AnEnrolmentsSignatureIsNoBatchs) {
  const std::string body = box.body({});
  ServerRequest request = box.request(body);
  request.headers[2].second = sign_body(enrol_media_type, body, box.key);
  EXPECT_EQ(fleet.send(request).status, 403);
}

TEST_F(Taking, ARetiredMachine) {
  ASSERT_TRUE(fleet.store()->retire(box.id()));
  const ServerReply reply = fleet.send(box.request(box.body({})));
  EXPECT_EQ(reply.status, 403);
  EXPECT_THAT(error_of(reply),
              HasSubstr("is retired here: to send again it needs a new key and a new token"));
}

// ---- enrolment ----

TEST_F(Taking, Enrolment) {
  Sender fresh(3);
  const std::string token = fleet.token("let-me-in");
  const ServerReply reply = fleet.send(fresh.enrolment(token));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(*parse_enrol_reply(reply.body), fresh.id());
  EXPECT_EQ(fleet.send(fresh.enrolment(token)).status, 200) << "an answer may have been lost";
  EXPECT_EQ(fleet.send(fresh.request(fresh.body({json_line(fresh.record())}))).status, 200);
  EXPECT_THAT(error_of(fleet.send(Sender(4).enrolment(token))), HasSubstr("used by another key"));
  EXPECT_THAT(fleet.all_said(), HasSubstr("machine " + fresh.id() + " is enrolled"));
}

TEST_F(Taking, WrongEnrolments) {
  Sender fresh(3);
  const auto refused = [&](const ServerRequest& request, int status, const char* words) {
    const ServerReply reply = fleet.send(request);
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(error_of(reply), HasSubstr(words));
  };
  refused(fresh.enrolment("guessed"), 403, "no such token");
  const std::string late = fleet.token("late", -1);
  refused(fresh.enrolment(late), 403, "expired");
  const std::string token = fleet.token("good");
  ServerRequest request = fresh.enrolment(token);
  request.body[20] ^= 1;
  EXPECT_GE(fleet.send(request).status, 400);
  request = fresh.enrolment(token);
  request.headers[1].second = box.id();
  refused(request, 400, "the key's fingerprint is");
  request = fresh.enrolment(token);
  request.headers[2].second = box.enrolment(token).headers[2].second;
  refused(request, 403, "the signature is not this key's");
  request = fresh.enrolment(token);
  request.body = std::string(5000, ' ');
  refused(request, 413, "at most 4096 bytes");
  request.body = "{\"schema\":1,\"token\":\"x\"}";
  refused(request, 400, "key");
  ASSERT_TRUE(fleet.store()->retire(box.id()));
  refused(box.enrolment(token), 403, "is retired");
  EXPECT_FALSE(*fleet.store()->machine(fresh.id()));
}

TEST_F(Taking, AReplacedMachineIsRetired) {
  Sender fresh(3);
  const std::string token = fleet.token("again", 1, box.id());
  EXPECT_EQ(fleet.send(fresh.enrolment(token)).status, 200);
  EXPECT_EQ(fleet.send(box.request(box.body({}))).status, 403);
  EXPECT_THAT(fleet.all_said(), HasSubstr("in place of " + box.id()));
}

}  // namespace
}  // namespace furlong::fleet
