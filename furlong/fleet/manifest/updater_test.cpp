// Each row of the list of what is refused (docs/formats/fleet-manifest.md), by name, and what stays then.
#include "furlong/fleet/manifest/updater.h"

#include <gmock/gmock.h>

#include "furlong/fleet/manifest/internal/testing.h"
#include "furlong/fleet/manifest/state.h"

namespace furlong::fleet {
namespace {

using namespace testing_support;
using testing::HasSubstr;

/// Wall time is set.
class WallClock : public Clock {
 public:
  std::int64_t now_ns() override { return 0; }
  std::int64_t wall_us() override { return wall; }
  void sleep_ns(std::int64_t) override {}
  std::int64_t wall = start_us + day_us;
};

class UpdaterTest : public testing::Test {
 protected:
  ManifestUpdater& updater() {
    if (!object_) open();
    return *object_;
  }
  void open(const Envelope& pinned) {
    object_.reset();
    auto opened = ManifestUpdater::open(print(pinned), client, data, files, clock);
    ASSERT_TRUE(opened) << opened.error().text();
    object_ = *std::move(opened);
  }
  void open() { open(signed_by(root_document(), {root_key()})); }
  Result<VerifiedManifest> take(const ManifestBody& body) { return updater().verify(print(body)); }
  Result<VerifiedManifest> take(const Envelope& manifest) {
    return take(ManifestBody{.roots = {}, .manifest = manifest, .stop = {}});
  }
  /// Version 5 is in use.
  void begin() {
    const auto taken = take(signed_by(manifest_document(5), {publish_key()}));
    ASSERT_TRUE(taken) << taken.error().text();
    ASSERT_EQ(taken->version, "5");
    ASSERT_TRUE(taken->tuning);
  }
  /// Refused with that word in the reason; 5 stays, now and at the next start.
  void refused(const Result<VerifiedManifest>& answer, const std::string& why) {
    ASSERT_FALSE(answer) << "was taken: " << answer->version;
    EXPECT_THAT(answer.error().text(), HasSubstr(why));
    five_stands();
    open();
    five_stands();
  }
  void five_stands() {
    const auto now = updater().standing();
    ASSERT_TRUE(now) << now.error().text();
    EXPECT_EQ(now->version, "5");
    ASSERT_TRUE(now->tuning);
    EXPECT_THAT(*now->tuning, HasSubstr("u2-ldg"));
  }
  void refused_payload(const std::string& payload, const std::string& why) {
    refused(take(signed_bytes_as(manifest_media_type, payload, publish_key())), why);
  }
  static std::string changed(const std::string& from, const std::string& to) {
    std::string text = print(manifest_document(6));
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  FakeFiles files;
  WallClock clock;
  Client client{.machine = "0123456789abcdef", .channel = "stable", .canary = false, .version = "0.1.0"};
  std::filesystem::path data = "/data";

 private:
  std::unique_ptr<ManifestUpdater> object_;
};

TEST_F(UpdaterTest, TakesWhatIsSignedAndKeepsItOverAStart) {
  EXPECT_EQ(updater().standing()->version, "");
  begin();
  open();
  five_stands();
  EXPECT_EQ(take(signed_by(manifest_document(6, "w4"), {publish_key()}))->version, "6");
  EXPECT_THAT(*updater().standing()->tuning, HasSubstr("w4"));
}

TEST_F(UpdaterTest, RefusesChangedBytes) {
  begin();
  Envelope changed = signed_by(manifest_document(6), {publish_key()});
  changed.payload = print(manifest_document(6, "w4"));
  refused(take(changed), "the signature of " + publish_key().public_key.id() + " is wrong");
}

TEST_F(UpdaterTest, ChecksSignaturesBeforeItParses) {
  begin();
  Envelope nonsense{.payload_type = std::string(manifest_media_type), .payload = "{\"a\":", .signatures = {}};
  add_signature(nonsense, test_key(9));
  refused(take(nonsense), "is no key of that role");
}

TEST_F(UpdaterTest, RefusesAnUnknownKey) {
  begin();
  refused(take(signed_by(manifest_document(6), {test_key(9)})), "is no key of that role");
}

TEST_F(UpdaterTest, RefusesAKeyOfAnotherRole) {
  begin();
  refused(take(signed_by(manifest_document(6), {root_key()})), "is no key of that role");
  refused(take(signed_by(manifest_document(6), {stop_key()})), "is no key of that role");
}

TEST_F(UpdaterTest, RefusesAnotherKeyUnderAKnownName) {
  begin();
  Envelope envelope = signed_by(manifest_document(6), {test_key(9)});
  envelope.signatures[0].key_id = publish_key().public_key.id();
  refused(take(envelope), "is wrong: the bytes were changed, or another key made it");
}

TEST_F(UpdaterTest, RefusesADocumentOfAnotherType) {
  begin();
  refused(take(signed_bytes_as(stop_media_type, print(manifest_document(6)), publish_key())), "is wanted");
}

TEST_F(UpdaterTest, RefusesTooFewSignaturesAndCountsOneKeyOnce) {
  RootDocument two = root_document();
  two.publish = {.threshold = 2, .keys = {publish_key().public_key, test_key(4).public_key}};
  open(signed_by(two, {root_key()}));
  Envelope envelope = signed_by(manifest_document(5), {publish_key()});
  envelope.signatures.push_back(envelope.signatures[0]);
  EXPECT_THAT(take(envelope).error().text(), HasSubstr("too few signatures: 1 of 2"));
  add_signature(envelope, test_key(4));
  EXPECT_TRUE(take(envelope));
}

TEST_F(UpdaterTest, RefusesAVersionBelowTheHighestSeen) {
  begin();
  refused(take(signed_by(manifest_document(4, "w4"), {publish_key()})),
          "manifest 4 is older than manifest 5");
}

TEST_F(UpdaterTest, RefusesTheSameVersionWithOtherBytes) {
  begin();
  refused(take(signed_by(manifest_document(5, "w4"), {publish_key()})), "with other bytes");
  EXPECT_TRUE(take(signed_by(manifest_document(5), {publish_key()}))) << "the same bytes are welcome";
}

TEST_F(UpdaterTest, AnExpiredManifestIsRefusedAndPinsLapse) {
  begin();
  ManifestDocument short_lived = manifest_document(6, "w4");
  short_lived.expires_us = start_us + day_us / 2;
  refused(take(signed_by(short_lived, {publish_key()})), "expired at 2026-03-02T00:00:00Z");
  clock.wall = start_us + 30 * day_us;
  const auto now = updater().standing();
  EXPECT_FALSE(now->tuning);
  EXPECT_THAT(now->note, HasSubstr("the manifest expired at"));
  EXPECT_FALSE(take(signed_by(manifest_document(5), {publish_key()})));
}

TEST_F(UpdaterTest, AClockThatJumpsForwardOnceLocksNothing) {
  begin();
  const std::int64_t right = clock.wall;
  clock.wall = start_us + 3000 * day_us;
  EXPECT_FALSE(updater().standing()->tuning);
  EXPECT_FALSE(take(signed_by(manifest_document(6), {publish_key()})));
  open();
  EXPECT_FALSE(updater().standing()->tuning);
  clock.wall = right;
  five_stands();
  EXPECT_TRUE(take(signed_by(manifest_document(6), {publish_key()})));
}

TEST_F(UpdaterTest, NothingOfTheLocalClockIsStored) {
  begin();
  const std::string one = *files.read("/data/manifest-state.json");
  files.remove("/data/manifest-state.json").value();
  clock.wall += 12345678;
  open();
  begin();
  EXPECT_EQ(*files.read("/data/manifest-state.json"), one);
}

TEST_F(UpdaterTest, RefusesAnotherProduct) {
  begin();
  refused_payload(changed("our-fleet", "their-fleet"), "of another product");
}

TEST_F(UpdaterTest, RefusesAnotherChannel) {
  begin();
  refused_payload(changed("stable", "beta"), "for another channel");
}

TEST_F(UpdaterTest, RefusesWhatNeedsANewerClient) {
  begin();
  refused_payload(changed("0.1.0", "0.2.0"), "wants a client of version 0.2.0, this is 0.1.0");
}

TEST_F(UpdaterTest, RefusesAnOversizedBody) {
  begin();
  refused(updater().verify(std::string(largest_manifest_body + 1, ' ')), "are more than");
}

TEST_F(UpdaterTest, RefusesADeeplyNestedBodyOrPayload) {
  begin();
  refused(updater().verify(std::string(1000, '[')), "nested deeper than");
  refused_payload(
      changed("\"rollout\"", "\"x\":" + std::string(40, '[') + std::string(40, ']') + ",\"rollout\""),
      "nested deeper than");
}

TEST_F(UpdaterTest, RefusesDuplicateKeys) {
  begin();
  refused_payload(changed("\"version\"", "\"version\":9,\"version\""), "stands twice");
  std::string body = print(
      ManifestBody{.roots = {}, .manifest = signed_by(manifest_document(6), {publish_key()}), .stop = {}});
  refused(updater().verify(body.replace(1, 0, "\"schema\":1,")), "stands twice");
}

TEST_F(UpdaterTest, RefusesNaN) {
  begin();
  refused_payload(changed("\"percent\": 100.0", "\"percent\": NaN"), "syntax error");
  refused_payload(changed("\"percent\": 100.0", "\"percent\": 1e999"), "number overflow");
}

TEST_F(UpdaterTest, RefusesInvalidUtf8) {
  begin();
  refused_payload(changed("u2-ldg", "u2\xff"), "UTF-8");
}

TEST_F(UpdaterTest, RefusesAnUnknownMember) {
  begin();
  refused_payload(changed("\"rollout\"", "\"script\": \"rm\",\n  \"rollout\""), "script");
}

TEST_F(UpdaterTest, RefusesATuningThatIsNone) {
  begin();
  refused_payload(changed("\"cards\"", "\"kards\""), "cards");
  const std::string text = print(manifest_document(6));
  const std::size_t at = text.find("\"tuning\": {");
  refused_payload(text.substr(0, at) + "\"tuning\": []}", "tuning");
  refused_payload(text.substr(0, at) + "\"tuning\": null}", "tuning");
  refused_payload(text.substr(0, at) + "\"tuning\": {\"schema\": 1}}", "cards");
}

TEST_F(UpdaterTest, RefusesATuningThatNamesMoreThanVariants) {
  begin();
  for (const char* name : {"../../bin/sh", "--use_fast_math", "a b", "$(rm)", "x\\ny"})
    refused_payload(changed("\"variant\": \"u2-ldg\"", fmt::format("\"variant\": \"{}\"", name)),
                    "is no name of a variant");
  refused_payload(changed("\"race\": false", "\"race\": false, \"flags\": \"-O9\""),
                  "can only name variants");
}

TEST_F(UpdaterTest, RefusesASymbolicLinkInPlaceOfTheState) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("manifest"));
  data = folder.path();
  const auto target = folder.path() / "elsewhere.json";
  std::filesystem::create_symlink(target, folder.path() / "manifest-state.json");
  open();
  const auto answer = take(signed_by(manifest_document(5), {publish_key()}));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().text(), HasSubstr("a symbolic link stands there"));
  EXPECT_FALSE(updater().standing());
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(UpdaterTest, RefusesATornState) {
  begin();
  const std::string whole = *files.read("/data/manifest-state.json");
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 3}) {
    ASSERT_TRUE(files.write_atomic("/data/manifest-state.json", whole.substr(0, size)));
    open();
    const auto answer = take(signed_by(manifest_document(6), {publish_key()}));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), Code::corrupt);
    EXPECT_THAT(answer.error().text(), HasSubstr("remove it to begin from the pinned root"));
    EXPECT_FALSE(updater().standing()) << "so that the files stay as they are";
  }
  ASSERT_TRUE(files.write_atomic("/data/manifest-state.json", whole));
  open();
  five_stands();
}

TEST_F(UpdaterTest, AStateWithoutItsSignaturesIsCorrupt) {
  begin();
  Trust trust = **updater().trust();
  trust.manifest->envelope.payload = print(manifest_document(5, "w4"));
  ASSERT_TRUE(files.write_atomic("/data/manifest-state.json", print(trust)));
  open();
  EXPECT_EQ(updater().standing().error().code(), Code::corrupt);
}

// Every step of a write fails once: what was in use stays, in memory and at the next start, and the next look
// takes it.
TEST_F(UpdaterTest, AWriteThatFailsLosesNothing) {
  for (int failing = 0; failing < 4; ++failing) {
    files.fault = {};
    ASSERT_TRUE(files.remove("/data"));
    open();
    begin();
    int step = 0;
    files.fault = [&](std::string_view operation, const std::filesystem::path&) -> Status {
      if (operation == "read" || step++ != failing) return {};
      return fail(Code::exhausted, "no space left");
    };
    const Envelope six = signed_by(manifest_document(6), {publish_key()});
    const auto answer = take(six);
    ASSERT_FALSE(answer) << failing;
    EXPECT_EQ(answer.error().code(), Code::exhausted);
    five_stands();
    open();
    const std::string version = updater().standing()->version;
    EXPECT_TRUE(version == "5" || (version == "6" && failing == 3)) << version << " after step " << failing;
    EXPECT_EQ(take(six)->version, "6");
  }
}

// --- roots

TEST_F(UpdaterTest, ARotationIsFollowedAndForgetsAFastForward) {
  begin();
  ASSERT_TRUE(take(signed_by(manifest_document(last_version), {publish_key()})));
  RootDocument second = root_document(2);
  second.publish.keys = {test_key(5).public_key};
  const Envelope root = signed_by(second, {root_key()});
  ManifestDocument next = manifest_document(6, "w4");
  next.root = 2;
  const auto taken = take(ManifestBody{.roots = {signed_by(root_document(), {root_key()}), root},
                                       .manifest = signed_by(next, {test_key(5)}),
                                       .stop = {}});
  ASSERT_TRUE(taken) << taken.error().text();
  EXPECT_EQ(taken->version, "6");
  open();
  EXPECT_EQ(updater().standing()->version, "6") << "the pinned root stays the first";
}

TEST_F(UpdaterTest, ARotationDropsWhatARevokedKeySigned) {
  begin();
  RootDocument second = root_document(2);
  second.publish.keys = {test_key(5).public_key};
  ASSERT_TRUE(take(ManifestBody{.roots = {signed_by(second, {root_key()})}, .manifest = {}, .stop = {}}));
  EXPECT_EQ(updater().standing()->version, "");
  EXPECT_FALSE(updater().standing()->tuning);
}

TEST_F(UpdaterTest, ARotationThatKeepsTheKeyKeepsTheManifestButNotItsReplay) {
  begin();
  ASSERT_TRUE(
      take(ManifestBody{.roots = {signed_by(root_document(2), {root_key()})}, .manifest = {}, .stop = {}}));
  EXPECT_EQ(updater().standing()->version, "5");
  EXPECT_THAT(take(signed_by(manifest_document(3, "w4"), {publish_key()})).error().text(),
              HasSubstr("made under root 1, root 2 is trusted here"));
}

TEST_F(UpdaterTest, RefusesARootThatTheOneBeforeHasNotSigned) {
  begin();
  RootDocument second = root_document(2);
  second.root.keys = {test_key(6).public_key};
  refused(take(ManifestBody{.roots = {signed_by(second, {test_key(6)})}, .manifest = {}, .stop = {}}),
          "root before");
  refused(take(ManifestBody{.roots = {signed_by(second, {root_key()})}, .manifest = {}, .stop = {}}),
          "new root");
  EXPECT_TRUE(take(
      ManifestBody{.roots = {signed_by(second, {root_key(), test_key(6)})}, .manifest = {}, .stop = {}}));
}

TEST_F(UpdaterTest, RefusesARootThatSkipsOne) {
  begin();
  refused(
      take(ManifestBody{.roots = {signed_by(root_document(3), {root_key()})}, .manifest = {}, .stop = {}}),
      "root 3 does not follow root 1");
}

TEST_F(UpdaterTest, ARootIsTakenThoughTheManifestBesideItIsRefused) {
  begin();
  RootDocument second = root_document(2);
  second.publish.keys = {test_key(5).public_key};
  EXPECT_FALSE(take(ManifestBody{.roots = {signed_by(second, {root_key()})},
                                 .manifest = signed_by(manifest_document(6), {publish_key()}),
                                 .stop = {}}));
  EXPECT_EQ((*updater().trust())->root.document.version, 2u);
}

TEST_F(UpdaterTest, AnExpiredRootPinsNothing) {
  RootDocument brief = root_document();
  brief.expires_us = start_us + 10 * day_us;
  open(signed_by(brief, {root_key()}));
  ASSERT_TRUE(take(signed_by(manifest_document(5), {publish_key()})));
  clock.wall = start_us + 11 * day_us;
  EXPECT_FALSE(updater().standing()->tuning);
  EXPECT_THAT(take(signed_by(manifest_document(6), {publish_key()})).error().text(),
              HasSubstr("the root expired"));
}

TEST_F(UpdaterTest, AnotherPinnedRootBeginsAnew) {
  begin();
  RootDocument other = root_document();
  other.expires_us += day_us;
  open(signed_by(other, {root_key()}));
  EXPECT_EQ(updater().standing()->version, "");
}

TEST_F(UpdaterTest, APinnedRootThatTheStateHasReachedChangesNothing) {
  begin();
  const Envelope second = signed_by(root_document(2), {root_key()});
  ASSERT_TRUE(take(ManifestBody{.roots = {second}, .manifest = {}, .stop = {}}));
  open(second);
  EXPECT_EQ(updater().standing()->version, "5");
}

TEST_F(UpdaterTest, RefusesAPinnedRootThatNobodySigned) {
  EXPECT_FALSE(ManifestUpdater::open(print(envelope_of(root_document())), client, data, files, clock));
  EXPECT_FALSE(ManifestUpdater::open("{}", client, data, files, clock));
}

// --- stops

TEST_F(UpdaterTest, AStopWithdrawsAndAManifestLiftsIt) {
  begin();
  const auto stopped =
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(1, 5), {stop_key()})});
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(stopped->tuning);
  EXPECT_THAT(stopped->note, HasSubstr("stop 1 says: race locally from manifest 5 on"));
  open();
  EXPECT_FALSE(updater().standing()->tuning) << "also after a start";
  EXPECT_FALSE(take(signed_by(manifest_document(6), {publish_key()}))->tuning)
      << "a stop that is left out stands";
  ManifestDocument lifts = manifest_document(7);
  lifts.lifts_stop = 1;
  EXPECT_TRUE(take(signed_by(lifts, {publish_key()}))->tuning);
}

TEST_F(UpdaterTest, AStopOfALaterVersionLeavesTheOneInUse) {
  begin();
  EXPECT_TRUE(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(1, 6), {stop_key()})})
          ->tuning);
}

TEST_F(UpdaterTest, RefusesAStopByAnotherKey) {
  begin();
  refused(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(), {publish_key()})}),
      "role stop");
}

TEST_F(UpdaterTest, RefusesAnOlderStop) {
  begin();
  ASSERT_TRUE(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(2, 9), {stop_key()})}));
  refused(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(1, 1), {stop_key()})}),
      "stop 1 is older");
  refused(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(2, 1), {stop_key()})}),
      "other bytes");
}

TEST_F(UpdaterTest, AStopHoldsUnderTheNextRootWithTheSameStopKeys) {
  begin();
  const Envelope first = signed_by(root_document(), {root_key()});
  const Envelope second = signed_by(root_document(2), {root_key()});
  const Envelope stop = signed_by(stop_document(2, 5), {stop_key()});
  ManifestDocument next = manifest_document(6);
  next.root = 2;
  const ManifestBody body{
      .roots = {first, second}, .manifest = signed_by(next, {publish_key()}), .stop = stop};
  const auto seen_first_there = take(body);
  ASSERT_TRUE(seen_first_there) << seen_first_there.error().text();
  EXPECT_FALSE(seen_first_there->tuning);
  const auto again = take(body);
  ASSERT_TRUE(again) << again.error().text();
  StopDocument under_second = stop_document(3, 6);
  under_second.root = 2;
  ASSERT_TRUE(take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(under_second, {stop_key()})}));
  EXPECT_THAT(take(ManifestBody{.roots = {}, .manifest = {}, .stop = stop}).error().text(),
              HasSubstr("stop 2 is older"));
  StopDocument of_third = stop_document(4, 6);
  of_third.root = 3;
  EXPECT_THAT(take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(of_third, {stop_key()})})
                  .error()
                  .text(),
              HasSubstr("made under root 3"));
  EXPECT_FALSE(updater().standing()->tuning);
}

TEST_F(UpdaterTest, ARotationToOtherStopKeysEndsAStop) {
  begin();
  ASSERT_TRUE(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(1, 5), {stop_key()})}));
  RootDocument second = root_document(2);
  second.stop.keys = {test_key(7).public_key};
  ASSERT_TRUE(take(ManifestBody{.roots = {signed_by(second, {root_key()})}, .manifest = {}, .stop = {}}));
  EXPECT_TRUE(updater().standing()->tuning);
  refused(
      take(ManifestBody{.roots = {}, .manifest = {}, .stop = signed_by(stop_document(1, 5), {stop_key()})}),
      "role stop");
}

// --- rollout

TEST_F(UpdaterTest, AMachineOutsideThePercentageKeepsWhatItHad) {
  begin();
  ManifestDocument canaries = manifest_document(6, "w4");
  canaries.percent = 0;
  const Envelope envelope = signed_by(canaries, {publish_key()});
  EXPECT_EQ(take(envelope)->version, "5");
  EXPECT_THAT(take(signed_by(manifest_document(5), {publish_key()})).error().text(), HasSubstr("older"))
      << "what was seen counts, though it was not taken";
  client.canary = true;
  open();
  EXPECT_EQ(take(envelope)->version, "6");
}

TEST(Rollout, ALargerShareHasAllMachinesOfASmallerOne) {
  ManifestDocument manifest = manifest_document();
  int tenth = 0, half = 0;
  for (int i = 0; i < 2000; ++i) {
    const Client client{
        .machine = fmt::format("{:016x}", i), .channel = "stable", .canary = false, .version = {}};
    manifest.percent = 10;
    const bool in_tenth = in_rollout(manifest, client);
    manifest.percent = 50;
    const bool in_half = in_rollout(manifest, client);
    EXPECT_TRUE(!in_tenth || in_half);
    tenth += in_tenth;
    half += in_half;
  }
  EXPECT_NEAR(tenth, 200, 50);
  EXPECT_NEAR(half, 1000, 100);
}

}  // namespace
}  // namespace furlong::fleet
