#include "furlong/fleet/hub/canaries.h"

#include <gmock/gmock.h>
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
using ::testing::HasSubstr;

constexpr std::int64_t hour_us = 3'600'000'000;

class CanaryFleet : public ::testing::Test {
 protected:
  CanaryFleet() {
    publish(3);
    fleet.options.manifest = "manifest.json";
    fleet.options.stop_key = made::stop_key();
    fleet.options.batches_per_minute = 1e6;
    fleet.know(canary);
    fleet.know(other);
    EXPECT_TRUE(fleet.store()->set_canary(canary.id(), true));
    fleet.clock.advance_ns(3 * 86'400'000'000'000);
  }
  void publish(std::uint64_t version, std::uint64_t lifts = 0, std::int64_t issued_us = made::start_us) {
    ManifestDocument document = made::manifest_document(version, pinned);
    if (!overridden.empty())
      document.tuning_override = *record::parse_tuning(made::tuning_text(overridden), "override");
    document.lifts_stop = lifts;
    document.issued_us = issued_us;
    ManifestBody body;
    body.roots = {made::signed_by(made::root_document(), {made::root_key()})};
    body.manifest = made::signed_by(document, {made::publish_key()});
    if (stop) body.stop = stop;
    ASSERT_TRUE(fleet.files.write_atomic("manifest.json", print(body)));
  }
  void send(Sender& sender, const std::vector<std::string>& lines) {
    const ServerReply reply = fleet.send(sender.request(sender.body(lines, "0.1.0")));
    ASSERT_EQ(reply.status, 200);
    ASSERT_EQ(parse_batch_reply(reply.body)->accepted.size(), lines.size()) << reply.body;
  }
  /// An hour apart, from then on, with a little noise.
  void race(Sender& sender, std::int64_t from_us, double rate, int count = 40, double base_rate = 115.9) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      Json record = sender.record(fmt::format("{:016x}", sender.random.next()), from_us + i * hour_us);
      const double noisy = rate * (1 + 0.001 * sender.random.normal());
      record["variants"] = {{"base", base_rate}, {"u2", noisy}};
      record["rate"] = noisy;
      record["base_rate"] = base_rate;
      lines.push_back(json_line(record));
    }
    send(sender, lines);
  }
  /// Races in which each variant is as fast as ever: u2 gains 3%, u8 what it says.
  void trial(Sender& sender, std::int64_t from_us, double u8_pct, int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      Json record = sender.record(fmt::format("{:016x}", sender.random.next()), from_us + i * hour_us);
      record["detail"] = Json::object();
      for (const auto& [name, pct] : {std::pair("u2", 3.0), std::pair("u8", u8_pct)}) {
        const double gain = pct + 0.1 * sender.random.normal();
        record["variants"][name] = 115.9 * (1 + gain / 100);
        record["detail"][name] = {{"gain_pct", gain}};
      }
      lines.push_back(json_line(record));
    }
    send(sender, lines);
  }
  void before(Sender& sender) { race(sender, made::start_us - 60 * hour_us, 118); }
  void after(Sender& sender, double rate) { race(sender, made::start_us + hour_us, rate); }
  void look() {
    fleet.hub().tick();
    fleet.clock.advance_ns(11'000'000'000);
    fleet.hub().learner().step();
  }
  Json rollout() { return json_of(fleet.send(get("/v1/rollout"))); }
  bool stopped() { return fleet.hub().manifest().now()->stopped(); }

  TestHub fleet;
  Sender canary{1}, other{2};
  std::optional<Envelope> stop;
  std::string pinned = "u2-ldg", overridden;
};

TEST_F(CanaryFleet, ARegressionOfTheirsStopsTheManifest) {
  before(canary);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"], (Json{{"machines", 1}, {"races", 0}, {"regressions", 0}}));
  after(canary, 112);
  look();
  EXPECT_TRUE(stopped());
  const Json told = rollout();
  EXPECT_EQ(told["canaries"]["races"], 40);
  EXPECT_EQ(told["canaries"]["regressions"], 1);
  EXPECT_THAT(told["canaries"]["why"].get<std::string>(),
              HasSubstr("u2 of lottery on NVIDIA_H200, driver 580.95.05: -5"));
  EXPECT_EQ(told["stop"]["from"], 3);
  EXPECT_THAT(fleet.all_said(),
              HasSubstr("stop 1 is signed and served: from manifest 3 on machines race locally"));
  EXPECT_THAT(fleet.send(get("/metrics")).body, HasSubstr("furlong_hub_stops_signed_total 1\n"));
  EXPECT_TRUE(check_body(*parse_manifest_body(*fleet.files.read("manifest.json"), "file"))->stop);
  race(canary, made::start_us + 45 * hour_us, 111, 10);
  look();
  look();
  EXPECT_THAT(fleet.send(get("/metrics")).body, HasSubstr("furlong_hub_stops_signed_total 1\n")) << "once";
}

/// Judging takes seconds; what is published meanwhile was not judged.
TEST_F(CanaryFleet, AManifestThatComesWhileTheyAreJudgedIsNotStopped) {
  before(canary);
  look();
  after(canary, 112);
  bool published = false;
  fleet.faults->set([&](std::string_view call) -> Status {
    if (call == "machines" && !std::exchange(published, true)) {
      publish(4, 0, made::start_us + 48 * hour_us);
      fleet.hub().manifest().look();
    }
    return {};
  });
  fleet.clock.advance_ns(11'000'000'000);
  fleet.hub().learner().step();
  ASSERT_TRUE(published);
  EXPECT_EQ(fleet.hub().manifest().now()->checked->manifest->version, 4u);
  EXPECT_FALSE(stopped());
  look();
  EXPECT_FALSE(stopped()) << "no canary has raced under it";
  EXPECT_EQ(rollout()["canaries"]["races"], 0);
}

TEST_F(CanaryFleet, AlsoAfterARestartNotTwice) {
  before(canary);
  after(canary, 112);
  look();
  ASSERT_TRUE(stopped());
  const std::string body = *fleet.files.read("manifest.json");
  fleet.core.reset();
  look();
  EXPECT_EQ(*fleet.files.read("manifest.json"), body);
  EXPECT_TRUE(stopped());
}

TEST_F(CanaryFleet, ALiftedStopIsSignedAnewForANewRegressionAlone) {
  before(canary);
  after(canary, 112);
  look();
  ASSERT_TRUE(stopped());
  stop = fleet.hub().manifest().now()->body.stop;
  publish(4, 1, made::start_us + 48 * hour_us);
  look();
  EXPECT_FALSE(stopped()) << "nothing has raced since";
  race(canary, made::start_us + 49 * hour_us, 104, 20);
  look();
  EXPECT_EQ(rollout()["manifest"]["version"], 4);
  EXPECT_EQ(rollout()["canaries"]["races"], 20) << "of those before, none counts";
  ASSERT_TRUE(stopped());
  EXPECT_EQ(fleet.hub().manifest().now()->checked->stop->from, 4u);
  EXPECT_EQ(fleet.hub().manifest().now()->checked->stop->version, 2u);
  EXPECT_THAT(fleet.send(get("/metrics")).body, HasSubstr("furlong_hub_stops_signed_total 2\n"));
}

/// The canary has nothing to compare: whatever is found is the other's.
TEST_F(CanaryFleet, OthersDoNotStopIt) {
  after(canary, 118);
  before(other);
  after(other, 112);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"], (Json{{"machines", 1}, {"races", 40}, {"regressions", 0}}));
  EXPECT_FALSE(json_of(fleet.send(get("/v1/regressions")))["regressions"].is_null());
  ASSERT_TRUE(fleet.store()->set_canary(other.id(), true));
  look();
  EXPECT_TRUE(stopped()) << "the same races, of a canary";
}

/// Each enrolled machine could stop the fleet's tuning otherwise, again after every lift.
TEST_F(CanaryFleet, WhoCallsItselfACanaryIsNone) {
  after(canary, 118);
  before(other);
  after(other, 112);
  ASSERT_EQ(fleet.send(other.request(other.body({}, "0.1.0", "3", true))).status, 200);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"], (Json{{"machines", 1}, {"races", 40}, {"regressions", 0}}));
  const Json machines = json_of(fleet.send(get("/v1/machines")))["machines"];
  for (const Json& machine : machines) {
    EXPECT_EQ(machine["canary"], machine["id"] == canary.id()) << machine;
    EXPECT_EQ(machine.contains("says_canary"), machine["id"] == other.id()) << "shown beside: " << machine;
  }
  ASSERT_TRUE(fleet.store()->set_canary(other.id(), true));
  look();
  EXPECT_TRUE(stopped()) << "the same races, of a canary";
}

/// Each variant is as fast as it was. The manifest pins the wrong one.
TEST_F(CanaryFleet, APinnedVariantThatLosesToBaseStopsIt) {
  pinned = "u8";
  publish(3);
  trial(canary, made::start_us - 60 * hour_us, -10, 40);
  look();
  EXPECT_FALSE(stopped());
  trial(canary, made::start_us + hour_us, -10, canary_least_races - 1);
  look();
  EXPECT_FALSE(stopped()) << "too few races";
  trial(canary, made::start_us + 20 * hour_us, -10, 1);
  look();
  EXPECT_TRUE(stopped());
  const Json told = rollout()["canaries"];
  EXPECT_EQ(told["regressions"], 1);
  EXPECT_THAT(told["why"].get<std::string>(),
              HasSubstr("u8, which the manifest pins for lottery on NVIDIA_H200, gains -"));
  EXPECT_THAT(told["why"].get<std::string>(), HasSubstr("where u2, which most races chose before, gained +"));
  EXPECT_THAT(fleet.all_said(), HasSubstr("u8, which the manifest pins for lottery on NVIDIA_H200"));
}

TEST_F(CanaryFleet, AlsoOneOfTheOverride) {
  pinned = "u2";
  overridden = "u8";
  publish(3);
  trial(canary, made::start_us + hour_us, -10, 12);
  look();
  EXPECT_TRUE(stopped());
}

TEST_F(CanaryFleet, APinnedVariantAsGoodAsTheChosenOneDoesNot) {
  pinned = "u8";
  publish(3);
  trial(canary, made::start_us - 60 * hour_us, 2.5, 40);
  trial(canary, made::start_us + hour_us, 2.5, 20);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"], (Json{{"machines", 1}, {"races", 20}, {"regressions", 0}}));
}

TEST_F(CanaryFleet, OthersRacesOfAPinDoNotStopIt) {
  pinned = "u8";
  publish(3);
  after(canary, 118);
  trial(other, made::start_us + hour_us, -10, 20);
  look();
  EXPECT_FALSE(stopped());
  ASSERT_TRUE(fleet.store()->set_canary(other.id(), true));
  look();
  EXPECT_TRUE(stopped()) << "the same races, of a canary";
}

/// The driver or the card: racing locally would not make it faster.
TEST_F(CanaryFleet, WhereBaseFellAsMuchItIsToldAndNotStopped) {
  before(canary);
  race(canary, made::start_us + hour_us, 112, 40, 115.9 * 112 / 118);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"]["regressions"], 2);
  EXPECT_THAT(rollout()["canaries"]["why"].get<std::string>(), HasSubstr("the driver or the card"));
  EXPECT_THAT(fleet.all_said(), HasSubstr("no reason for a stop"));
  const std::string said = fleet.all_said();
  race(canary, made::start_us + 45 * hour_us, 112, 10, 115.9 * 112 / 118);
  look();
  EXPECT_EQ(fleet.all_said(), said) << "once";
}

TEST_F(CanaryFleet, FewRacesStopNothing) {
  before(canary);
  race(canary, made::start_us + hour_us, 112, canary_least_races - 1);
  look();
  EXPECT_FALSE(stopped());
  race(canary, made::start_us + 20 * hour_us, 112, 1);
  look();
  EXPECT_TRUE(stopped());
}

TEST_F(CanaryFleet, TheOperatorsWordHolds) {
  ASSERT_TRUE(fleet.store()->set_canary(canary.id(), false));
  before(canary);
  after(canary, 112);
  ASSERT_EQ(fleet.send(canary.request(canary.body({}, "0.1.0", "3", true))).status, 200);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"]["machines"], 0);
  ASSERT_TRUE(fleet.store()->set_canary(canary.id(), true));
  ASSERT_EQ(fleet.send(canary.request(canary.body({}, "0.1.0", "3", false))).status, 200);
  look();
  EXPECT_TRUE(stopped()) << "also against a header that says it is none";
}

TEST_F(CanaryFleet, ARetiredCanaryIsNone) {
  before(canary);
  after(canary, 112);
  ASSERT_TRUE(fleet.store()->retire(canary.id()));
  look();
  EXPECT_FALSE(stopped());
  EXPECT_EQ(rollout()["canaries"]["machines"], 0);
}

TEST_F(CanaryFleet, WithoutAStopKeyItIsOnlyTold) {
  fleet.options.stop_key.reset();
  before(canary);
  after(canary, 112);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_THAT(rollout()["problem"].get<std::string>(), HasSubstr("no stop key (--stop-key)"));
  EXPECT_THAT(fleet.all_said(), HasSubstr("1 regression in the canaries' races since manifest 3"));
  const std::string said = fleet.all_said();
  look();
  look();
  EXPECT_EQ(fleet.all_said(), said) << "once";
}

TEST_F(CanaryFleet, AKeyThatMayNotSignIsToldBeforeAStopIsDue) {
  fleet.options.stop_key = made::publish_key();
  before(canary);
  look();
  EXPECT_THAT(rollout()["problem"].get<std::string>(), HasSubstr("is no stop key of root 1"));
  EXPECT_THAT(fleet.all_said(), HasSubstr("the hub can sign no stop"));
}

TEST_F(CanaryFleet, AKeyThatMayNotSignIsTold) {
  fleet.options.stop_key = made::publish_key();
  before(canary);
  after(canary, 112);
  look();
  EXPECT_FALSE(stopped());
  EXPECT_THAT(rollout()["problem"].get<std::string>(), HasSubstr("a stop is due and was not signed"));
}

}  // namespace
}  // namespace furlong::fleet
