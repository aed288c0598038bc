#include "furlong/fleet/store/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/random.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {
namespace {

using ::testing::HasSubstr;

record::RaceRecord a_record() {
  record::RaceRecord record;
  record.id = "01956a3c-8f00-7abc-8def-0123456789ab";
  record.ts = "2026-03-01T12:00:00Z";
  record.machine = "7dd9d66144961473";
  record.slot = "s-77aa01";
  record.card = "NVIDIA_H200";
  record.silicon = {.vendor = "NVIDIA", .arch = "sm_90", .multiprocessors = 132, .hash = "9c1f0a5b7d3e2f46"};
  record.backend = "cuda";
  record.driver = "580.159.04";
  record.program = "lottery";
  record.source = "b3d1c0";
  record.epoch = "00f1e2d3c4b5a697";
  record.program_class = {{"wide", lattice::Value(std::int64_t{0})},
                          {"loads", lattice::Value(std::int64_t{128})}};
  record.unit = "MH/s";
  record.variants = {
      {.name = "base", .rate = 100.0, .detail = {}},
      {.name = "u2", .rate = 103.0, .detail = {.gain_pct = 2.9, .ci = record::Interval{2.5, 3.3}}},
      {.name = "ldg", .rate = 98.0, .detail = {}},
      {.name = "u8", .rate = {}, .detail = {}}};
  record.variants[3].detail.exit = "compile";
  record.base_rate = 100.0;
  record.winner = "u2";
  record.verdict = record::Verdict::winner;
  return record;
}

TEST(DecodedRace, HoldsPairedGainsAndTheSubject) {
  const auto race = decode(a_record());
  ASSERT_TRUE(race) << race.error().text();
  EXPECT_EQ(race->subject.silicon, "9c1f0a5b7d3e2f46");
  EXPECT_EQ(race->subject.program_class, R"({"loads":128,"wide":0})")
      << "features by name, whatever their order";
  ASSERT_EQ(race->variants.size(), 4u);
  EXPECT_EQ(race->variants[0].gain_pct, 0.0F);
  EXPECT_FLOAT_EQ(race->variants[1].gain_pct, 2.9F) << "the paired gain, not that of the rates";
  EXPECT_FLOAT_EQ(race->variants[1].half_pct, 0.4F);
  EXPECT_FLOAT_EQ(race->variants[2].gain_pct, -2.0F)
      << "without a paired gain, that of the rates of the same race";
  EXPECT_TRUE(std::isnan(race->variants[3].gain_pct));
  EXPECT_EQ(race->variants[3].exit, Exit::compile);
}

TEST(DecodedRace, ACardWithoutSiliconIsOneByItsLabel) {
  record::RaceRecord record = a_record();
  record.silicon = {};
  EXPECT_EQ(decode(record)->subject.silicon, "label:NVIDIA_H200");
}

TEST(DecodedRace, RefusesWhatTheHubCannotFile) {
  record::RaceRecord record = a_record();
  record.slot.clear();
  EXPECT_THAT(decode(record).error().text(), HasSubstr("slot"));
  record = a_record();
  record.driver = std::string(201, 'x');
  EXPECT_THAT(decode(record).error().text(), HasSubstr("driver: 201 bytes"));
  record = a_record();
  record.variants[1].name = "u2\x1b[2J";
  EXPECT_THAT(decode(record).error().text(), HasSubstr("control characters"));
  record = a_record();
  record.id = "7";
  EXPECT_EQ(decode(record).error().code(), Code::invalid);
  for (const char* label : {"", "   ", "\xe2\x80\x8b"}) {
    record = a_record();
    record.card = label;
    EXPECT_THAT(decode(record).error().text(), HasSubstr("card: ")) << label;
  }
  record = a_record();
  record.variants.resize(4097, {.name = "v", .rate = 1.0, .detail = {}});
  EXPECT_THAT(decode(record).error().text(), HasSubstr("4097"));
}

TEST(PackedGain, ComesBackAsItWas) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<PackedGain> gains(random.below(9));
    std::string bytes;
    const auto maybe = [&] {
      return random.below(3) == 0 ? absent : static_cast<float>(random.uniform() * 200 - 100);
    };
    for (PackedGain& gain : gains) {
      gain = {.variant = static_cast<std::uint32_t>(random.below(1ull << (1 + random.below(32)))),
              .gain_pct = maybe(),
              .half_pct = maybe(),
              .rate = maybe(),
              .power_w = maybe(),
              .exit = static_cast<Exit>(random.below(10)),
              .fallback = random.below(2) == 1};
      pack(gain, bytes);
    }
    std::vector<PackedGain> back{PackedGain{}};
    ASSERT_TRUE(unpack(bytes, back));
    ASSERT_EQ(back.size(), gains.size());
    std::string again;
    for (const PackedGain& gain : back) pack(gain, again);
    EXPECT_EQ(again, bytes);
    for (std::size_t i = 0; i < gains.size(); ++i) {
      EXPECT_EQ(back[i].variant, gains[i].variant);
      EXPECT_EQ(std::isnan(back[i].rate), std::isnan(gains[i].rate));
    }
  }
}

TEST(PackedGain, AnyCutOrFlippedByteIsAnErrorOrOtherNumbers) {
  std::string bytes;
  pack({.variant = 300, .gain_pct = 1.5F, .rate = 100}, bytes);
  std::vector<PackedGain> gains;
  for (std::size_t length = 1; length < bytes.size(); ++length) {
    const Status status = unpack(std::string_view(bytes).substr(0, length), gains);
    ASSERT_FALSE(status) << length;
    EXPECT_EQ(status.error().code(), Code::corrupt);
  }
  EXPECT_FALSE(unpack("\xff\xff\xff\xff\xff\x01\x00\x00", gains));
  EXPECT_FALSE(unpack(std::string("\x01\x0f\x00", 3), gains)) << "no such exit";
}

TEST(RecordId, IsSixteenBytes) {
  const std::string text = "01956a3c-8f00-7abc-8def-0123456789ab";
  EXPECT_EQ(record_id_text(*parse_record_id(text)), text);
  EXPECT_FALSE(parse_record_id("01956a3c8f007abc8def0123456789ab"));
}

TEST(StoreUrl, ShowsNoPassword) {
  EXPECT_EQ(shown_url("postgresql://hub:s3cret@db:5432/fleet"), "postgresql://hub:***@db:5432/fleet");
  EXPECT_EQ(shown_url("postgresql://hub:s3/cr?e@t@db/fleet"), "postgresql://hub:***@db/fleet");
  EXPECT_EQ(shown_url("postgresql://hub:s3/cret@db/fleet?x=1"), "postgresql://hub:***@db/fleet?x=1");
  const auto misspelt = open_store({}, "hub:s3cret@db/fleet");
  EXPECT_EQ(misspelt.error().text().find("s3cret"), std::string::npos) << misspelt.error().text();
  EXPECT_EQ(shown_url("postgresql://hub@db:5432/fleet?x=1"), "postgresql://hub@db:5432/fleet?x=1");
  EXPECT_EQ(shown_url("postgresql://hub:@db/fleet"), "postgresql://hub:@db/fleet");
  EXPECT_EQ(shown_url("postgresql://hub@db/fleet?password=s3cret&x=1"),
            "postgresql://hub@db/fleet?password=***&x=1");
  EXPECT_EQ(shown_url("sqlite:/var/lib/hub.sqlite"), "sqlite:/var/lib/hub.sqlite");
}

TEST(StoreUrl, AnUnknownKindNamesTheOthers) {
  const StoreKind kinds[] = {{.scheme = "sqlite", .example = "sqlite:FILE", .open = {}}};
  const auto store = open_store(kinds, "mysql://x");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), Code::invalid);
  EXPECT_THAT(store.error().text(), HasSubstr("sqlite:FILE"));
}

}  // namespace
}  // namespace furlong::fleet
