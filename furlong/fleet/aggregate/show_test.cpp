// The tuning, the JSON of the hub and the text for people.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/json.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/numbers.h"
#include "furlong/fleet/aggregate/internal/testing.h"
#include "furlong/fleet/manifest/documents.h"

namespace furlong::fleet {
namespace {

using ::testing::ElementsAre;
using testing::Fleet;
using ::testing::HasSubstr;

Fleet sample() {
  Fleet fleet;
  fleet.power_w = 200;
  fleet.subject.program_class = R"({"loads":128,"wide":0})";
  for (const char* machine : {"a", "b", "c"})
    fleet.add(
        7,
        {.machine = machine, .gains = {{"u2", 2.07F}, {"ldg", 1.5F}}, .power_limit_w = 450, .winner = "u2"});
  fleet.subject.program = "gemv";
  fleet.subject.program_class = "{}";
  fleet.subject.unit = "GB/s";
  fleet.add(3, {.machine = "a", .gains = {{"int4", 6}}});
  return fleet;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(FleetTuning, HasTheRowsOfThePage) {
  const Aggregate aggregate = sample().aggregated();
  const record::Tuning tuning = to_tuning(aggregate);
  EXPECT_EQ(tuning.window_days, 7);
  ASSERT_EQ(tuning.cards.size(), 1u);
  ASSERT_EQ(tuning.cards[0].rows.size(), 2u);
  const record::TuningRow& gemv = tuning.cards[0].rows[0];
  const record::TuningRow& row = tuning.cards[0].rows[1];
  EXPECT_EQ(gemv.program, "gemv");
  EXPECT_EQ(gemv.by, "rate");
  EXPECT_TRUE(gemv.race);
  EXPECT_EQ(row.program_class, (record::ProgramClass{{"loads", 128}, {"wide", 0}}));
  EXPECT_EQ(row.variant, "u2");
  EXPECT_FALSE(row.race);
  EXPECT_THAT(row.candidates, ElementsAre("u2", "ldg", "base"));
  EXPECT_EQ(row.samples, 21);
  EXPECT_EQ(row.races, 21);
  EXPECT_EQ(row.machines, 3);
  EXPECT_EQ(row.rate, 102.07);
  EXPECT_EQ(row.base_rate, 100);
  EXPECT_EQ(row.gain_pct, 2.07);
  EXPECT_EQ(row.rate_per_w, 0.51035);
  EXPECT_EQ(row.backend, "cuda");
  EXPECT_EQ(row.by, "mhs");
  EXPECT_EQ(row.source, "src");
  EXPECT_TRUE(check_tuning_names(tuning, "tuning"));
  const auto again = record::parse_tuning(record::print(tuning), "tuning");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(record::print(*again), record::print(tuning));
}

TEST(FleetTuning, SaysNoSourceWhereRacesNameSeveral) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"u2", 2}}});
  fleet.source = "other";
  fleet.add(3, {.gains = {{"u2", 2}}});
  EXPECT_EQ(to_tuning(fleet.aggregated()).cards.at(0).rows.at(0).source, "");
}

TEST(FleetJson, HasTheShapesOfTheHubsInterface) {
  const Aggregate aggregate = sample().aggregated();
  const Json list = to_json(aggregate);
  EXPECT_THAT(keys_of(list), ElementsAre("schema", "updated", "window_days", "races", "cards"));
  ASSERT_EQ(list["cards"].size(), 1u);
  EXPECT_THAT(keys_of(list["cards"][0]), ElementsAre("key", "label", "aliases", "silicon", "rows"));
  EXPECT_THAT(keys_of(list["cards"][0]["rows"][1]),
              ElementsAre("program", "class", "backend", "metric", "unit", "variant", "choice", "leads",
                          "candidates", "samples", "races", "machines", "newest", "rate", "base_rate",
                          "rate_per_w", "gain_pct", "ci"));
  const Json row = to_json(aggregate.cards[0])["rows"][1];
  EXPECT_EQ(row["choice"], "pinned-by-stability");
  EXPECT_EQ(row["class"]["loads"], 128);
  EXPECT_EQ(row["gain_pct"], 2.07);
  EXPECT_EQ(row["ci"], Json::array({2.07, 2.07}));
  EXPECT_TRUE(row.contains("why") && row.contains("set_aside"));
  const Json& variant = row["variants"][0];
  EXPECT_THAT(keys_of(variant),
              ElementsAre("name", "gain_pct", "ci", "standing_pct", "rate", "rate_per_w", "samples", "races",
                          "machines", "won", "exits", "strata", "drivers", "days"));
  EXPECT_EQ(variant["won"], 21);
  EXPECT_EQ(row["leads"], true);
  EXPECT_EQ(variant["strata"],
            Json::parse(R"([{"power":"450 W","gain_pct":2.07,"ci":[2.07,2.07],"machines":3}])"));
  EXPECT_EQ(variant["drivers"][0]["driver"], "580.10");
  EXPECT_EQ(variant["days"][0]["day"], "2026-02-28");
  // One machine has no interval: it is left out, as everything absent is.
  EXPECT_FALSE(to_json(aggregate.cards[0])["rows"][0]["variants"][0].contains("ci"));
  EXPECT_EQ(json_line(list).find("null"), std::string::npos);
  EXPECT_EQ(json_line(row).find("null"), std::string::npos);
}

TEST(FleetJson, SaysWhichBackEndsRowIsTakenAndWhyAHigherGainLost) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"}) {
    fleet.subject.backend = "cuda";
    fleet.add(3, {.machine = machine, .gains = {{"u2", 2}}, .base_rate = 100});
    fleet.subject.backend = "opencl";
    fleet.add(3, {.machine = machine, .gains = {{"u2", 5}}, .base_rate = 60});
  }
  fleet.subject.backend = "cuda";
  fleet.add(3, {.machine = "a", .gains = {{"magic", 900}}, .base_rate = 100});
  const Json rows = to_json(fleet.aggregated().cards.at(0))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["backend"], "cuda");
  EXPECT_EQ(rows[0]["leads"], true);
  EXPECT_EQ(rows[1]["leads"], false);
  for (const Json& variant : rows[0]["variants"]) {
    if (variant["name"] != "magic") continue;
    EXPECT_EQ(variant["gain_pct"], 900);
    EXPECT_EQ(variant["standing_pct"], 0);
  }
}

TEST(FleetExplain, SaysWhyACardHasItsEntry) {
  Fleet fleet = sample();
  fleet.add(1, {.machine = "z", .slot = "slot-a", .gains = {{"int4", 6}}});
  const Aggregate aggregate = fleet.aggregated();
  const std::string text = explain_text(aggregate.cards.at(0), aggregate.options);
  for (const char* part :
       {"Card, silicon 00000000000000aa", "window of 7 days until 2026-03-01T00:00:00Z",
        "lottery {\"loads\":128,\"wide\":0} on cuda, rates in MH/s: u2 (pinned-by-stability)",
        "u2: +2.07% (+2.07% to +2.07%) on 3 machines, 21 races; pinned, since its interval lies above 0.5%",
        "21 races, 21 records, 3 voices, 0 pinned runs", "candidates: u2, ldg, base", "580.10", "450 W",
        "2026-02-28", "same-card", "reports slot slot-a as a does"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(FleetJson, NumbersAreRoundedToWhatIsKnown) {
  EXPECT_EQ(internal::rounded(static_cast<double>(2.07F)), 2.07);
  EXPECT_EQ(internal::rounded(-118.3F), -118.3);
  EXPECT_EQ(internal::rounded(1.55e12), 1.55e12);
  EXPECT_EQ(internal::rounded(1234567.0), 1234570);
  EXPECT_EQ(internal::rounded(0), 0);
  EXPECT_EQ(internal::rounded(1e-30), 0);
}

}  // namespace
}  // namespace furlong::fleet
