#include "furlong/fleet/manifest/envelope.h"

#include <gmock/gmock.h>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/fleet/manifest/internal/testing.h"

namespace furlong::fleet {
namespace {

using namespace testing_support;
using testing::HasSubstr;

ManifestBody body() {
  return {.roots = {signed_by(root_document(), {root_key()})},
          .manifest = signed_by(manifest_document(7), {publish_key()}),
          .stop = signed_by(stop_document(), {stop_key()})};
}

std::string error_of(const std::string& text) {
  const auto read = parse_manifest_body(text, "m.json");
  return read ? "" : read.error().text();
}

TEST(ManifestBodyText, ThereAndBackAndAsInTheGoldenFile) {
  const std::string text = print(body());
  const auto read = parse_manifest_body(text, "m.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, body());
  const auto golden = system_files().read("furlong/fleet/testdata/fleet_manifest.json");
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(*golden, text);
}

TEST(ManifestBodyText, RefusesWhatIsNotExactlyThis) {
  const std::string good = print(body());
  EXPECT_EQ(error_of(good), "");
  EXPECT_THAT(error_of(R"({"schema":2})"), HasSubstr("found schema 2, expected 1"));
  EXPECT_THAT(error_of(R"({"schema":1})"), HasSubstr("neither a manifest nor a root nor a stop"));
  EXPECT_THAT(error_of(R"({"schema":1,"stops":{}})"), HasSubstr("stops"));
  EXPECT_THAT(error_of(R"({"schema":1,"schema":1})"), HasSubstr("stands twice"));
  EXPECT_THAT(error_of(R"({"schema":NaN})"), HasSubstr("m.json: byte 10"));
  EXPECT_THAT(error_of("{\"schema\":1,\"\xff\":1}"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("nested deeper than"));
  EXPECT_THAT(error_of(std::string(largest_manifest_body + 1, ' ')), HasSubstr("are more than"));
  EXPECT_THAT(error_of(good + "x"), HasSubstr("m.json: byte"));
}

TEST(EnvelopeText, RefusesWhatIsNotExactlyThis) {
  const auto error = [](const std::string& text) {
    const auto read = parse_envelope(text, "e");
    return read ? "" : read.error().text();
  };
  EXPECT_THAT(error(R"({"payloadType":"t","payload":"Zg=","signatures":[]})"), HasSubstr("no base64"));
  EXPECT_THAT(error(R"({"payloadType":"t","payload":"","signatures":[{"keyid":"x","sig":""}]})"),
              HasSubstr("16 lower-case"));
  EXPECT_THAT(
      error(R"({"payloadType":"t","payload":"","signatures":[{"keyid":"0123456789abcdef","sig":"Zg=="}]})"),
      HasSubstr("64 bytes, not 1"));
  EXPECT_THAT(error(R"({"payloadType":"t","payload":"","signatures":[],"more":1})"), HasSubstr("more"));
}

TEST(Envelope, OneKeyCountsOnceHoweverOftenItSigned) {
  Envelope envelope = signed_by(manifest_document(), {publish_key()});
  envelope.signatures.push_back(envelope.signatures.front());
  const RoleKeys two{.threshold = 2, .keys = {publish_key().public_key, test_key(9).public_key}};
  EXPECT_THAT(open_envelope(envelope, manifest_media_type, two, "publish").error().message(),
              HasSubstr("too few signatures: 1 of 2"));
  add_signature(envelope, test_key(9));
  EXPECT_TRUE(open_envelope(envelope, manifest_media_type, two, "publish"));
  const RoleKeys same_twice{.threshold = 2, .keys = {publish_key().public_key, publish_key().public_key}};
  EXPECT_FALSE(open_envelope(envelope, manifest_media_type, same_twice, "publish"));
}

TEST(Envelope, AThresholdOfNoneOpensNothing) {
  const Envelope envelope = envelope_of(manifest_document());
  EXPECT_FALSE(open_envelope(envelope, manifest_media_type, {.threshold = 0, .keys = {}}, "publish"));
}

// Any byte of the body changed to any other: it is refused, or the documents in it are the same.
TEST(ManifestBodyText, NoFlippedByteChangesWhatIsVerified) {
  const std::string good = print(body());
  const RootDocument root = root_document();
  Random random(1, "flips");
  int refused = 0, same = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + random.below(255)));
    const auto read = parse_manifest_body(bad, "m.json");
    if (!read) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(read->manifest && read->stop && read->roots.size() == 1)
        << "byte " << at << ": a part is gone";
    const auto manifest = open_manifest(root, *read->manifest);
    const auto stop = open_stop(root, *read->stop);
    const auto pinned = open_pinned_root(read->roots[0]);
    if (!manifest || !stop || !pinned) {
      ++refused;
      continue;
    }
    ++same;
    EXPECT_EQ(*manifest, manifest_document(7)) << "byte " << at;
    EXPECT_EQ(*stop, stop_document()) << "byte " << at;
    EXPECT_EQ(pinned->document, root) << "byte " << at;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(same, 300) << "only blanks between the members";
}

}  // namespace
}  // namespace furlong::fleet
