#include "furlong/fleet/record_batch.h"

#include <gmock/gmock.h>

#include "furlong/base/os/file.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

constexpr const char* golden = "furlong/fleet/testdata/record_batch.txt";

KeyPair key() { return *KeyPair::from_seed(Bytes(32, 7)); }

RecordBatch example() {
  return {.id = "01956a3c-8f00-7abc-8def-0123456789ab",
          .machine = key().public_key.id(),
          .lines = {R"({"schema":1,"id":"01956a3c-8f00-7abc-8def-0123456789ac"})", R"({"x":"é"})"}};
}

std::string error_of(std::string_view body, const BatchLimits& limits = {}) {
  const auto batch = parse_record_batch(body, limits);
  return batch ? "" : batch.error().text();
}

TEST(RecordBatch, TheBytesAreThoseOfTheGoldenFile) {
  const auto file = system_files().read(golden);
  ASSERT_TRUE(file) << file.error().text();
  const auto body = print(example());
  ASSERT_TRUE(body);
  // The golden file is the body, then its signature by the key of the seed 07…07.
  const std::string signature = sign_body(batch_media_type, *body, key());
  EXPECT_EQ(*file, *body + signature + "\n");
  EXPECT_TRUE(verify_body(batch_media_type, *body, signature, key().public_key));
  const auto again = parse_record_batch(*body);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, example());
}

TEST(RecordBatch, AReportHasNoRecordsAndSaysWhoItIsOf) {
  RecordBatch report = example();
  report.lines.clear();
  report.agent = "0.1.0";
  report.manifest = "7";
  report.canary = true;
  const auto body = print(report);
  ASSERT_TRUE(body);
  const auto again = parse_record_batch(*body);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, report);
  std::string bad = *body;
  bad.replace(bad.find("0.1.0"), 5, std::string(65, 'x'));
  EXPECT_THAT(error_of(bad), HasSubstr("agent"));
}

TEST(RecordBatch, TheSignatureIsOverTheEncodingOfDsse) {
  EXPECT_EQ(signed_bytes("a/b", "x y"), "DSSEv1 3 a/b 3 x y");
  const std::string signature = sign_body(batch_media_type, "body", key());
  EXPECT_FALSE(verify_body(batch_media_type, "bodY", signature, key().public_key));
  EXPECT_FALSE(verify_body(enrol_media_type, "body", signature, key().public_key))
      << "another sort of document";
  EXPECT_FALSE(verify_body(batch_media_type, "body", "zz", key().public_key));
  EXPECT_FALSE(verify_body(batch_media_type, "body", signature + "00", key().public_key));
}

TEST(RecordBatch, WhatIsWrongIsNamed) {
  const std::string head =
      R"({"schema":1,"batch":"01956a3c-8f00-7abc-8def-0123456789ab","machine":"0123456789abcdef","records":1})";
  EXPECT_EQ(error_of(head + "\n{}\n"), "");
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of(head), HasSubstr("line 1 at byte 0 is torn"));
  EXPECT_THAT(error_of(head + "\n{}"), HasSubstr("line 2"));
  EXPECT_THAT(error_of(head + "\n"), HasSubstr("ends after 0 records, its header announces 1"));
  EXPECT_THAT(error_of(head + "\n{}\n{}\n"), HasSubstr("announces only 1"));
  EXPECT_THAT(error_of(head + "\n\n"), HasSubstr("is empty"));
  EXPECT_THAT(error_of("{\"schema\":2}\n"), HasSubstr("found schema 2, expected 1"));
  EXPECT_THAT(error_of("{\"schema\":1,\"batch\":\"x\",\"machine\":\"0123456789abcdef\",\"records\":0}\n"),
              HasSubstr("no UUIDv7"));
  EXPECT_THAT(error_of(head + "\n{}\n", {.bytes = 50}), HasSubstr("50 are the most"));
  EXPECT_THAT(error_of(head + "\n" + std::string(200, 'x') + "\n", {.line_bytes = 120}),
              HasSubstr("line 2 has 200 bytes"));
  EXPECT_THAT(error_of(head + "\n{}\n", {.records = 0}), HasSubstr("0 are the most"));
}

TEST(RecordBatch, ALineWithANewlineIsOurDefect) {
  RecordBatch batch = example();
  batch.lines = {"a\nb"};
  EXPECT_FALSE(print(batch));
}

TEST(BatchReply, ThereAndBack) {
  const BatchReply reply{
      .accepted = {"a"}, .duplicate = {"b", "c"}, .refused = {{.id = "d", .why = "no base"}}};
  const auto again = parse_batch_reply(print(reply));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, reply);
  EXPECT_FALSE(parse_batch_reply("[]"));
  EXPECT_FALSE(parse_batch_reply(R"({"schema":1,"accepted":["a"],"duplicate":["a"],"refused":[]})"));
  EXPECT_FALSE(parse_batch_reply(R"({"schema":1,"accepted":["a"]})"));
  EXPECT_EQ(parse_batch_reply(R"({"schema":9})").error().code(), Code::incompatible);
}

TEST(Enrolment, ThereAndBack) {
  const EnrolRequest request{.token = "t", .key = key().public_key};
  const auto again = parse_enrol_request(print(request));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, request);
  EXPECT_EQ(*parse_enrol_reply(R"({"schema":1,"machine":"m"})"), "m");
  EXPECT_FALSE(parse_enrol_reply("{}"));
}

}  // namespace
}  // namespace furlong::fleet
