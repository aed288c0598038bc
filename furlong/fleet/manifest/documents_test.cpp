#include "furlong/fleet/manifest/documents.h"

#include <gmock/gmock.h>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/fleet/manifest/internal/testing.h"

namespace furlong::fleet {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr const char* folder = "furlong/fleet/testdata/";

std::string golden(const std::string& name) {
  const auto text = system_files().read(folder + name);
  EXPECT_TRUE(text) << text.error().text();
  return text ? *text : "";
}

TEST(FleetDocuments, TheBytesAreThoseOfTheGoldenFiles) {
  EXPECT_EQ(print(root_document()), golden("fleet_root_payload.json"));
  EXPECT_EQ(print(manifest_document(7)), golden("fleet_manifest_payload.json"));
  EXPECT_EQ(print(stop_document()), golden("fleet_stop_payload.json"));
}

TEST(FleetDocuments, ThereAndBack) {
  EXPECT_EQ(*parse_root(print(root_document(4)), "r"), root_document(4));
  EXPECT_EQ(*parse_manifest(print(manifest_document(7)), "m"), manifest_document(7));
  EXPECT_EQ(*parse_stop(print(stop_document(2, 9)), "s"), stop_document(2, 9));
}

std::string root_error(const std::string& from, const std::string& to) {
  std::string text = print(root_document());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const auto read = parse_root(text.replace(at, from.size(), to), "r");
  return read ? "" : read.error().text();
}

TEST(RootDocument, RefusesWhatCouldNotBeTrusted) {
  const std::string publish = publish_key().public_key.hex(), stop = stop_key().public_key.hex();
  EXPECT_THAT(root_error(stop, publish), HasSubstr("each key has one role"));
  EXPECT_THAT(root_error("\"threshold\": 1", "\"threshold\": 0"), HasSubstr("threshold"));
  EXPECT_THAT(root_error("\"threshold\": 1", "\"threshold\": 2"), HasSubstr("can never be met"));
  EXPECT_THAT(root_error("\"version\": 1", "\"version\": 0"), HasSubstr("version"));
  EXPECT_THAT(root_error("\"version\": 1", "\"version\": 9007199254740992"), HasSubstr("version"));
  EXPECT_THAT(root_error("\"our-fleet\"", "\"../x\""), HasSubstr("product"));
  EXPECT_THAT(root_error("\"schema\": 1", "\"schema\": 2"), HasSubstr("found schema 2, expected 1"));
  EXPECT_THAT(root_error("\"roles\"", "\"rolls\""), HasSubstr("roles"));
}

TEST(ManifestDocument, ExpiresAfterItIsIssued) {
  ManifestDocument document = manifest_document();
  document.expires_us = document.issued_us;
  EXPECT_THAT(parse_manifest(print(document), "m").error().text(), HasSubstr("expires before it is issued"));
}

TEST(Utc, IsExactlyOneForm) {
  EXPECT_EQ(*parse_utc("1970-01-01T00:00:01Z"), 1'000'000);
  EXPECT_EQ(iso_time(*parse_utc("2028-02-29T23:59:59Z")), "2028-02-29T23:59:59Z");
  for (const char* bad :
       {"", "2026-03-01", "2026-03-01T12:00:00", "2026-03-01T12:00:00.0Z", "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01 12:00:00Z", "1969-12-31T23:59:59Z"})
    EXPECT_FALSE(parse_utc(bad)) << bad;
}

}  // namespace
}  // namespace furlong::fleet
