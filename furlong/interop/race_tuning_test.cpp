#include "furlong/interop/race_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "furlong/base/json.h"

namespace furlong::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json race(std::int64_t n, const std::string& winner, const std::string& hash = "aa",
          const std::string& time = "2026-01-01T00:00:00Z") {
  return Json::parse(fmt::format(
      R"({{"schema":1,"kind":"race","ts":"{}","program":"mix","language":"cuda","source":"s1","problem":{{"n":{},"mode":"a"}},
      "device":{{"address":"cuda:0","label":"Card","driver":"580","vendor":"NVIDIA","arch":"sm_90","multiprocessors":132,
        "memory_bytes":1000,"silicon":"{}"}},"options":{{"metric":"rate"}},"winner":"{}",
      "variants":[{{"name":"base","rate":100.0,"gain":0.0}},{{"name":"u2","rate":103.0,"gain":0.03}},
        {{"name":"u4","rate":98.0,"gain":-0.02}},{{"name":"u8","exit":"gate","rate":null,"gain":null}}]}})",
      time, n, hash, winner));
}

std::string refused(Json document) {
  const auto made = tuning_from_races({{"r.json", std::move(document)}});
  return made ? "accepted" : std::string(code_name(made.error().code())) + ": " + made.error().text();
}

TEST(RaceTuning, SizesOfOneCardAndProgramAreOneRow) {
  const Json sizes{{"schema", 1}, {"races", {race(64, "base"), race(4096, "u2"), race(1024, "u2")}}};
  const auto made = tuning_from_races({{"r.json", sizes}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->updated, "2026-01-01T00:00:00Z");
  ASSERT_EQ(made->cards.size(), 1u);
  const record::TuningCard& card = made->cards[0];
  EXPECT_EQ(card.key, "Card");
  EXPECT_EQ(card.silicon->hash, "aa");
  EXPECT_EQ(card.silicon->multiprocessors, 132);
  ASSERT_EQ(card.rows.size(), 1u);
  const record::TuningRow& row = card.rows[0];
  EXPECT_EQ(row.program, "mix");
  EXPECT_EQ(row.backend, "cuda");
  EXPECT_EQ(row.source, "s1");
  EXPECT_EQ(row.by, "rate");
  EXPECT_EQ(row.variant, "u2");
  EXPECT_EQ(row.races, 3);
  EXPECT_THAT(row.candidates, ElementsAre("u2", "base"));
  EXPECT_EQ(row.gain_pct, std::nullopt) << "of three sizes none stands for all";
  ASSERT_EQ(row.sizes.size(), 3u);
  const auto large = std::ranges::find(row.sizes, record::ProgramClass{{"n", 4096}, {"mode", "a"}},
                                       &record::TuningSize::problem);
  ASSERT_NE(large, row.sizes.end());
  EXPECT_EQ(large->variant, "u2");
  EXPECT_EQ(large->rate, 103);
  EXPECT_EQ(large->base_rate, 100);
  ASSERT_EQ(large->gains_pct.size(), 2u) << "what was not timed has no gain";
  EXPECT_EQ(large->gains_pct[0].first, "u2");
  EXPECT_NEAR(large->gains_pct[0].second, 3, 1e-12);
  const auto again = record::parse_tuning(record::print(*made), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(record::print(*again), record::print(*made));
}

TEST(RaceTuning, TheNewestRaceOfAProblemStandsInAnyOrder) {
  std::vector<std::pair<std::string, Json>> documents{{"a", race(64, "u2")},
                                                      {"b", race(64, "base", "aa", "2026-02-01T00:00:00Z")},
                                                      {"c", race(64, "u4", "bb")},
                                                      {"d", race(128, "u2", "bb")}};
  const auto made = tuning_from_races(documents);
  ASSERT_TRUE(made) << made.error().text();
  ASSERT_EQ(made->cards.size(), 2u);
  EXPECT_EQ(made->cards[0].key, "Card@aa") << "one name and two kinds of silicon";
  EXPECT_EQ(made->cards[0].rows[0].variant, "base");
  EXPECT_EQ(made->cards[0].rows[0].sizes.size(), 1u);
  EXPECT_EQ(made->cards[1].key, "Card@bb");
  EXPECT_EQ(made->updated, "2026-02-01T00:00:00Z");
  std::ranges::reverse(documents);
  EXPECT_EQ(record::print(tuning_from_races(documents).value()), record::print(*made));
}

TEST(RaceTuning, AnotherNameOfTheSameSiliconIsAnAlias) {
  Json renamed = race(128, "u2");
  renamed["device"]["label"] = "Renamed";
  const auto made = tuning_from_races({{"a", race(64, "u2")}, {"b", renamed}});
  ASSERT_TRUE(made) << made.error().text();
  ASSERT_EQ(made->cards.size(), 1u);
  EXPECT_THAT(made->cards[0].aliases, ::testing::SizeIs(1));
}

TEST(RaceTuning, WhatIsWrongIsNamed) {
  EXPECT_EQ(refused(Json::array()), "invalid: r.json must be an object, not array");
  Json wrong = race(1, "u2");
  wrong["schema"] = 2;
  EXPECT_EQ(refused(wrong), "incompatible: r.json: found schema 2, expected 1: race again with this version");
  wrong = race(1, "u2");
  wrong["device"].erase("silicon");
  EXPECT_EQ(refused(wrong), "invalid: r.json.device.silicon is missing");
  wrong = race(1, "u2");
  for (Json& variant : wrong["variants"]) variant["rate"] = nullptr;
  EXPECT_EQ(refused(wrong), "invalid: r.json: nothing was timed, so there is nothing to take from it");
  EXPECT_EQ(refused(Json{{"races", Json::array()}}), "invalid: no race to make a tuning of");
  Json other = race(2, "u2");
  other["device"]["address"] = "opencl:0";
  const auto made = tuning_from_races({{"a.json", race(1, "u2")}, {"b.json", other}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(),
            "a.json is of back end cuda and b.json of opencl, on one card: write one tuning for each");
}

}  // namespace
}  // namespace furlong::interop
