#include "furlong/fleet/hub/learner.h"

#include <gtest/gtest.h>

#include "furlong/fleet/hub/internal/testing.h"
#include "furlong/fleet/manifest/internal/testing.h"

namespace furlong::fleet {
namespace {

namespace made = testing_support;
using hub_testing::get;
using hub_testing::json_of;
using hub_testing::Sender;
using hub_testing::TestHub;

void publish(TestHub& fleet, std::uint64_t version, const std::string& variant) {
  ManifestDocument document = made::manifest_document(version, variant);
  document.tuning->cards.at(0).rows.at(0).program_class = {{"loads", std::int64_t{128}},
                                                           {"wide", std::int64_t{0}}};
  ManifestBody body;
  body.roots = {made::signed_by(made::root_document(), {made::root_key()})};
  body.manifest = made::signed_by(document, {made::publish_key()});
  ASSERT_TRUE(fleet.files.write_atomic("manifest.json", print(body)));
}

/// The row of the only card as the dashboard has it, and as the tuning has it.
std::pair<std::string, bool> shown(TestHub& fleet) {
  fleet.hub().tick();
  fleet.clock.advance_ns(11'000'000'000);
  fleet.hub().learner().step();
  const Json row = json_of(fleet.send(get("/v1/cards")))["cards"][0]["rows"][0];
  const auto tuning = record::parse_tuning(fleet.send(get("/v1/tuning")).body, "tuning");
  EXPECT_TRUE(tuning && tuning->cards.size() == 1) << fleet.send(get("/v1/tuning")).body;
  if (!tuning || tuning->cards.empty()) return {};
  const record::TuningRow& tuned = tuning->cards[0].rows.at(0);
  EXPECT_EQ(row["variant"], tuned.variant);
  EXPECT_EQ(row["choice"], tuned.race ? "race" : "pinned-by-stability");
  return {tuned.variant, tuned.race};
}

TEST(Learner, WhatTheServedManifestPinsIsShownAsPinned) {
  TestHub fleet;
  Sender box{1};
  fleet.options.manifest = "manifest.json";
  fleet.options.aggregate.min_samples = 1;
  fleet.know(box);
  ASSERT_EQ(fleet.send(box.request(box.body({json_line(box.record())}))).status, 200);
  EXPECT_EQ(shown(fleet), std::pair(std::string("u2"), true)) << "by its race";
  publish(fleet, 1, "ldg");
  EXPECT_EQ(shown(fleet), std::pair(std::string("ldg"), false)) << "no new race is needed for that";
  publish(fleet, 2, "w4");
  EXPECT_EQ(shown(fleet), std::pair(std::string("w4"), false));
}

TEST(Learner, ACardWithPinnedRunsAloneShowsWhatIsPinned) {
  TestHub fleet;
  Sender box{1};
  fleet.options.manifest = "manifest.json";
  fleet.know(box);
  Json record = box.record();
  record["pinned"] = true;
  record["winner"] = "ldg";
  record["variants"]["ldg"] = record["variants"]["u2"];
  record["verdict"] = "pinned";
  const ServerReply reply = fleet.send(box.request(box.body({json_line(record)})));
  ASSERT_EQ(json_of(reply)["accepted"].size(), 1u) << reply.body;
  publish(fleet, 1, "ldg");
  EXPECT_EQ(shown(fleet), std::pair(std::string("ldg"), false));
}

}  // namespace
}  // namespace furlong::fleet
