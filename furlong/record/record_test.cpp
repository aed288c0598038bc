#include "furlong/record/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/record/internal/random_record.h"
#include "furlong/record/internal/test_records.h"

namespace furlong::record {
namespace {

using ::testing::HasSubstr;

std::string file(const std::string& path) { return system_files().read(path).value(); }

TEST(RaceRecord, TheGoldenFilesAreWrittenByteForByte) {
  EXPECT_EQ(json_pretty(to_json(internal::lottery_record())),
            file("furlong/record/testdata/race_record_lottery.json"));
  EXPECT_EQ(json_pretty(to_json(internal::failed_gemv_record())),
            file("furlong/record/testdata/race_record_gemv.json"));
}

TEST(RaceRecord, TheGoldenFilesAreReadWhole) {
  EXPECT_EQ(parse_record(file("furlong/record/testdata/race_record_lottery.json"), "f").value(),
            internal::lottery_record());
  EXPECT_EQ(parse_record(file("furlong/record/testdata/race_record_gemv.json"), "f").value(),
            internal::failed_gemv_record());
}

TEST(RaceRecord, ThePageShowsTheGoldenRecord) {
  EXPECT_THAT(file("docs/formats/race-record.md"),
              HasSubstr(file("furlong/record/testdata/race_record_lottery.json")));
}

TEST(RaceRecord, EveryKeyOfTheGoldenRecordStandsInThePage) {
  const std::string page = file("docs/formats/race-record.md");
  const Json json = to_json(internal::lottery_record());
  for (const auto& [key, unused] : json.items()) EXPECT_THAT(page, HasSubstr("`" + key + "`"));
  for (const auto& [key, unused] : json["silicon"].items()) EXPECT_THAT(page, HasSubstr("`" + key + "`"));
  for (const char* key : {"gain_pct", "ci", "heats", "regs", "spills", "shared_bytes", "warps", "memory_mib",
                          "error", "compile_ms", "power_w", "out", "exit", "same_code_as", "fallback"})
    EXPECT_THAT(page, HasSubstr("`" + std::string(key) + "`"));
}

TEST(RaceRecord, RandomRecordsSurviveTheRoundTrip) {
  Random random(11);
  for (int i = 0; i < 400; ++i) {
    const RaceRecord record = internal::random_record(random);
    const std::string line = to_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto read = parse_record(line, "random");
    ASSERT_TRUE(read) << read.error().text() << "\n" << line;
    EXPECT_EQ(*read, record) << line;
    EXPECT_EQ(to_line(*read), line);
  }
}

TEST(RaceRecord, LotteryRecordsAnswerToTheirOldNames) {
  const Json json = to_json(internal::lottery_record());
  EXPECT_EQ(json["mhs"], json["rate"]);
  EXPECT_EQ(json["base_mhs"], json["base_rate"]);
  EXPECT_EQ(json["mh_per_w"], json["rate_per_w"]);
  EXPECT_FALSE(to_json(internal::failed_gemv_record()).contains("mhs"));
  Json old = json;
  for (const char* key : {"rate", "base_rate", "rate_per_w", "backend", "unit"}) old.erase(key);
  old["worker"] = "CUDA";
  const auto read = from_json(old, "old").value();
  EXPECT_EQ(read.rate, 118.3);
  EXPECT_EQ(read.base_rate, 115.9);
  EXPECT_EQ(read.rate_per_w, 0.297);
  EXPECT_EQ(read.backend, "cuda");
  EXPECT_EQ(read.extra, "");
}

TEST(RaceRecord, BackEndsAreLowerCase) {
  Json json = to_json(internal::lottery_record());
  for (const auto& [written, read] : {std::pair{"CUDA", "cuda"}, {"Metal", "metal"}, {"OpenCL", "opencl"}}) {
    json["backend"] = written;
    EXPECT_EQ(from_json(json, "f").value().backend, read);
  }
}

TEST(RaceRecord, UnknownKeysAreKept) {
  Json json = to_json(internal::lottery_record());
  json["later"] = {1, "x"};
  json["silicon"]["cache_mib"] = 96;
  json["detail"]["u2"]["occupancy"] = 0.5;
  RaceRecord record = from_json(json, "f").value();
  record.agent = "0.2.0";
  const Json written = to_json(record);
  EXPECT_EQ(written["later"], json["later"]);
  EXPECT_EQ(written["silicon"]["cache_mib"], 96);
  EXPECT_EQ(written["detail"]["u2"]["occupancy"], 0.5);
  EXPECT_EQ(written["agent"], "0.2.0");
}

TEST(RaceRecord, WhatFellBackSaysSoAndTheOthersAreSilent) {
  RaceRecord record = internal::lottery_record();
  EXPECT_EQ(to_line(record).find("fallback"), std::string::npos);
  record.variants[1].detail.fallback = true;
  EXPECT_EQ(to_json(record)["detail"]["u2"]["fallback"], true);
  EXPECT_TRUE(parse_record(to_line(record), "f").value().variants[1].detail.fallback);
  Json json = to_json(record);
  json["detail"]["u2"]["fallback"] = false;
  EXPECT_FALSE(from_json(json, "f").value().variants[1].detail.fallback);
}

TEST(RaceRecord, AnotherSchemaIsIncompatibleAndSaysBoth) {
  const auto read = parse_record(R"({"schema":2,"cards":3})", "r.jsonl:4");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::incompatible);
  EXPECT_EQ(read.error().text(), "r.jsonl:4: race record of schema 2, expected 1: a newer program wrote it");
  EXPECT_EQ(parse_record("{}", "f").error().text(), "f.schema is missing");
  EXPECT_EQ(parse_record("[]", "f").error().text(), "f must be an object, not array");
}

TEST(RaceRecord, WhatIsWrongIsNamed) {
  const auto refused = [](auto change) {
    Json json = to_json(internal::lottery_record());
    change(json);
    const auto read = from_json(json, "f");
    if (read) return std::string("accepted");
    EXPECT_EQ(read.error().code(), Code::invalid);
    return read.error().text();
  };
  for (const char* key : {"ts", "card", "program", "variants", "verdict", "backend"})
    EXPECT_EQ(refused([&](Json& j) { j.erase(key); }), fmt::format("f.{} is missing", key));
  EXPECT_EQ(refused([](Json& j) { j["heats"] = "21"; }), "f.heats must be a whole number, not string");
  EXPECT_THAT(refused([](Json& j) { j["heats"] = -1; }), HasSubstr("f.heats is -1"));
  EXPECT_THAT(refused([](Json& j) { j["rate"] = -0.5; }), HasSubstr("f.rate is -0.5"));
  EXPECT_EQ(refused([](Json& j) { j["variants"]["u2"] = "fast"; }),
            "f.variants.u2 is \"fast\": must be a rate of at least 0 or null");
  EXPECT_EQ(refused([](Json& j) { j["variants"] = Json::object(); }), "f.variants is empty");
  EXPECT_EQ(refused([](Json& j) { j["variants"][""] = 1; }), "f.variants holds a variant without a name");
  EXPECT_EQ(refused([](Json& j) { j["detail"]["u3"] = Json::object(); }),
            "f.detail.u3 is not among the variants");
  EXPECT_EQ(refused([](Json& j) { j["detail"]["u2"]["regs"] = true; }),
            "f.detail.u2.regs must be a whole number, not boolean");
  EXPECT_EQ(refused([](Json& j) { j["detail"]["u2"]["fallback"] = 1; }),
            "f.detail.u2.fallback must be true or false, not number");
  EXPECT_EQ(refused([](Json& j) { j["ci"] = {2, 1}; }), "f.ci must go from low to high, not from 2 to 1");
  EXPECT_EQ(refused([](Json& j) { j["ci"] = {2}; }), "f.ci must be two numbers");
  EXPECT_EQ(refused([](Json& j) { j["winner"] = "u3"; }), "f.winner 'u3' is not among the variants");
  EXPECT_THAT(refused([](Json& j) { j["verdict"] = "winer"; }),
              HasSubstr("f.verdict: 'winer' is no verdict, did you mean "
                        "'winner'?"));
  EXPECT_THAT(refused([](Json& j) { j["epoch"] = "00F1"; }), HasSubstr("f.epoch is '00F1'"));
  EXPECT_THAT(refused([](Json& j) { j["id"] = "7"; }), HasSubstr("f.id is '7', no UUIDv7"));
  EXPECT_THAT(refused([](Json& j) { j["ts"] = "yesterday"; }), HasSubstr("f.ts: 'yesterday' is no time"));
  EXPECT_EQ(refused([](Json& j) { j["class"]["wide"] = Json::array(); }),
            "f.class.wide must be a number, a word or a boolean");
  EXPECT_EQ(refused([](Json& j) { j["class"]["wide"] = 18446744073709551615ull; }),
            "f.class.wide must be a number, a word or a boolean");
  EXPECT_EQ(refused([](Json& j) { j["silicon"] = 7; }), "f.silicon must be an object, not number");
  EXPECT_EQ(refused([](Json& j) { j["notes"] = {1}; }), "f.notes[0] must be a string, not number");
  EXPECT_EQ(refused([](Json& j) { j["pinned"] = 0; }), "f.pinned must be true or false, not number");
}

TEST(RaceRecord, NumbersThatAreNoneAreWrittenAsUnknown) {
  RaceRecord record = internal::lottery_record();
  record.rate = std::nan("");
  record.variants[1].rate = INFINITY;
  record.paused_ms = std::nan("");
  record.ci = Interval{-1, INFINITY};
  record.variants[1].detail.ci = Interval{-INFINITY, INFINITY};
  record.variants[1].detail.gain_pct = std::nan("");
  record.program_class.emplace_back("density", std::nan(""));
  const auto line = parse_record(to_line(record), "f");
  ASSERT_TRUE(line) << line.error().text();
  const RaceRecord& read = *line;
  EXPECT_FALSE(read.ci.has_value());
  EXPECT_FALSE(read.variants[1].detail.ci.has_value());
  EXPECT_FALSE(read.variants[1].detail.gain_pct.has_value());
  EXPECT_EQ(read.program_class, internal::lottery_record().program_class);
  EXPECT_FALSE(read.rate.has_value());
  EXPECT_FALSE(read.variants[1].rate.has_value());
  EXPECT_EQ(read.paused_ms, 0);
}

TEST(RaceRecord, WhatTheHubAsksFor) {
  EXPECT_TRUE(check_complete(internal::lottery_record()));
  for (std::string RaceRecord::* member :
       {&RaceRecord::id, &RaceRecord::machine, &RaceRecord::slot, &RaceRecord::source}) {
    RaceRecord record = internal::lottery_record();
    record.*member = "";
    EXPECT_EQ(check_complete(record).error().code(), Code::invalid);
  }
  EXPECT_THAT(check_complete(internal::failed_gemv_record()).error().text(), HasSubstr("no id"));
}

TEST(RecordId, IsAVersion7UuidOfItsTime) {
  FakeClock clock;
  Random random(5);
  std::set<std::string> ids;
  const std::int64_t start_ms = clock.wall_us() / 1000;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = make_record_id(clock, random);
    EXPECT_TRUE(is_record_id(id)) << id;
    const std::string ms = id.substr(0, 8) + id.substr(9, 4);
    EXPECT_EQ(std::stoll(ms, nullptr, 16), start_ms + i);
    ids.insert(id);
    clock.advance_ns(1'000'000);
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST(RecordId, LooksLikeNothingElse) {
  EXPECT_TRUE(is_record_id("01956a3c-8f00-7abc-8def-0123456789ab"));
  for (const char* other : {"", "01956a3c-8f00-4abc-8def-0123456789ab",
                            "01956a3c-8f00-7abc-cdef-0123456789ab", "01956A3C-8f00-7abc-8def-0123456789ab",
                            "01956a3c_8f00-7abc-8def-0123456789ab", "01956a3c-8f00-7abc-8def-0123456789ab0"})
    EXPECT_FALSE(is_record_id(other)) << other;
}

TEST(Stamp, ReadsWhatTheClockWrites) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t second = static_cast<std::int64_t>(random.below(4102444800));  // until 2100
    EXPECT_EQ(parse_stamp(iso_time(second * 1'000'000)).value(), second * 1'000'000);
  }
  EXPECT_EQ(parse_stamp("1970-01-01T00:00:00Z").value(), 0);
  EXPECT_EQ(parse_stamp("2024-02-29T00:00:00.25Z").value(), 1709164800'250000);
  EXPECT_EQ(parse_stamp("2024-02-29T00:00:00.1234567Z").value(), 1709164800'123456);
  for (const char* bad :
       {"", "2025-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00+01:00Z", "1969-12-31T23:59:59Z"})
    EXPECT_FALSE(parse_stamp(bad)) << bad;
}

TEST(ProgramClass, ComparesWithoutOrderAndPrintsInOrder) {
  const ProgramClass a{{"loads", 128}, {"wide", 0}}, b{{"wide", 0}, {"loads", 128}}, c{{"loads", 128}};
  EXPECT_EQ(class_text(a), "loads=128,wide=0");
  EXPECT_TRUE(same_class(a, b));
  EXPECT_FALSE(same_class(a, c));
  EXPECT_FALSE(same_class(c, a));
  EXPECT_TRUE(same_class({}, {}));
}

}  // namespace
}  // namespace furlong::record
