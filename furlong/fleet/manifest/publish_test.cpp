#include "furlong/fleet/manifest/publish.h"

#include <gmock/gmock.h>

#include "furlong/fleet/manifest/internal/testing.h"

namespace furlong::fleet {
namespace {

using namespace testing_support;
using testing::HasSubstr;

ManifestDocument next(const ManifestDocument* current, const PublishRequest& request,
                      const StopDocument* stop = nullptr) {
  const auto document = next_manifest(root_document(), current, stop, request, start_us + 1'500'000);
  EXPECT_TRUE(document) << document.error().text();
  return document ? *document : ManifestDocument();
}

TEST(Publish, CarriesOverWhatIsNotNamed) {
  ManifestDocument current = manifest_document(7);
  current.channel = "beta";
  const ManifestDocument same = next(&current, {});
  EXPECT_EQ(same.version, 8u);
  EXPECT_EQ(same.channel, "beta");
  EXPECT_EQ(same.minimum_client, "0.1.0");
  EXPECT_EQ(same.tuning, current.tuning);
  EXPECT_EQ(same.issued_us, start_us + 1'000'000) << "whole seconds";
  EXPECT_EQ(same.percent, 100);

  PublishRequest replace;
  replace.tuning.replace = *record::parse_tuning(tuning_text("w4"), "t");
  replace.tuning_override.replace = *record::parse_tuning(tuning_text("w8"), "t");
  const ManifestDocument replaced = next(&current, replace);
  EXPECT_EQ(replaced.tuning, replace.tuning.replace);
  EXPECT_EQ(replaced.tuning_override, replace.tuning_override.replace);

  PublishRequest drop;
  drop.tuning.drop = true;
  const ManifestDocument dropped = next(&replaced, drop);
  EXPECT_FALSE(dropped.tuning);
  EXPECT_EQ(dropped.tuning_override, replaced.tuning_override);
}

TEST(Publish, TheFirstManifest) {
  const ManifestDocument first = next(nullptr, {});
  EXPECT_EQ(first.version, 1u);
  EXPECT_EQ(first.channel, "stable");
  EXPECT_FALSE(first.tuning);
}

TEST(Publish, AStopHoldsUntilItIsLiftedByName) {
  const ManifestDocument current = manifest_document(7);
  const auto stop = next_stop(root_document(), current, nullptr, 0, start_us);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->from, 7u);
  EXPECT_EQ(next(&current, {}, &*stop).lifts_stop, 0u);
  PublishRequest lift;
  lift.lift_stop = true;
  const ManifestDocument lifted = next(&current, lift, &*stop);
  EXPECT_EQ(lifted.lifts_stop, 1u);
  EXPECT_EQ(next_stop(root_document(), lifted, nullptr, 0, start_us)->version, 2u)
      << "one that is not lifted yet";
  EXPECT_THAT(next_manifest(root_document(), &current, nullptr, lift, start_us).error().message(),
              HasSubstr("no stop"));
}

TEST(Publish, NoManifestOutlivesItsRoot) {
  PublishRequest request;
  request.expires_days = 366;
  EXPECT_THAT(next_manifest(root_document(), nullptr, nullptr, request, start_us).error().message(),
              HasSubstr("would outlive its root"));
}

TEST(Publish, TheShareStaysAsItWasUnlessItIsNamed) {
  EXPECT_EQ(next(nullptr, {}).percent, 100);
  ManifestDocument current = manifest_document(7);
  current.percent = 0;
  EXPECT_EQ(next(&current, {}).percent, 0) << "the canaries alone";
  PublishRequest further;
  further.percent = 25;
  EXPECT_EQ(next(&current, further).percent, 25);
}

TEST(CheckBody, AStopEndsWithTheKeysThatSignedIt) {
  ManifestBody body{
      .roots = {signed_by(root_document(), {root_key()}), signed_by(root_document(2), {root_key()})},
      .manifest = {},
      .stop = signed_by(stop_document(), {stop_key()})};
  EXPECT_TRUE(check_body(body)->stop) << "the next root has the same stop keys";
  RootDocument second = root_document(2);
  second.stop.keys = {test_key(7).public_key};
  body.roots.back() = signed_by(second, {root_key()});
  const auto ended = check_body(body);
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_FALSE(ended->stop);
  body.stop = signed_by(stop_document(), {test_key(9)});
  EXPECT_FALSE(check_body(body)) << "nobody's";
}

TEST(CheckBody, FindsAManifestUnderAnOlderRoot) {
  RootDocument second = root_document(2);
  second.publish.keys = {test_key(5).public_key};
  ManifestBody body{.roots = {signed_by(root_document(), {root_key()}), signed_by(second, {root_key()})},
                    .manifest = signed_by(manifest_document(7), {publish_key()}),
                    .stop = {}};
  const auto checked = check_body(body);
  ASSERT_TRUE(checked) << checked.error().text();
  EXPECT_EQ(checked->root.document.version, 2u);
  EXPECT_EQ(checked->manifest->version, 7u);
  body.manifest = signed_by(manifest_document(7), {test_key(9)});
  EXPECT_FALSE(check_body(body));
  body.roots.clear();
  EXPECT_FALSE(check_body(body));
}

}  // namespace
}  // namespace furlong::fleet
