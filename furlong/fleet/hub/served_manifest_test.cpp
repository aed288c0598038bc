#include "furlong/fleet/hub/served_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/fleet/hub/canaries.h"
#include "furlong/fleet/hub/internal/testing.h"
#include "furlong/fleet/manifest/internal/testing.h"

namespace furlong::fleet {
namespace {

namespace made = testing_support;
using hub_testing::get;
using hub_testing::header;
using hub_testing::json_of;
using hub_testing::TestHub;
using ::testing::HasSubstr;

ManifestBody body_of(std::uint64_t version, std::optional<StopDocument> stop = {},
                     const std::string& variant = "u2-ldg", std::uint64_t lifts = 0) {
  ManifestDocument document = made::manifest_document(version, variant);
  document.lifts_stop = lifts;
  ManifestBody body;
  body.roots = {made::signed_by(made::root_document(), {made::root_key()})};
  body.manifest = made::signed_by(document, {made::publish_key()});
  if (stop) body.stop = made::signed_by(*stop, {made::stop_key()});
  return body;
}

class Serves : public ::testing::Test {
 protected:
  Serves() { fleet.options.manifest = "manifest.json"; }
  void put(const std::string& text) { ASSERT_TRUE(fleet.files.write_atomic("manifest.json", text)); }
  void put(const ManifestBody& body) { put(print(body)); }
  std::string served() {
    fleet.hub().tick();
    const ServerReply reply = fleet.send(get("/v1/manifest"));
    return reply.status == 200 ? reply.body : std::to_string(reply.status);
  }
  std::string problem() { return fleet.hub().manifest().now()->problem; }
  TestHub fleet;
};

TEST_F(Serves, TheFilesBytes) {
  EXPECT_EQ(served(), "404");
  EXPECT_THAT(problem(), HasSubstr("there is no such file"));
  put(body_of(1));
  EXPECT_EQ(served(), print(body_of(1)));
  EXPECT_EQ(problem(), "");
  const std::string tag = header(fleet.send(get("/v1/manifest")), "ETag");
  put(body_of(2));
  EXPECT_EQ(served(), print(body_of(2))) << "read again when it changes";
  EXPECT_NE(header(fleet.send(get("/v1/manifest")), "ETag"), tag);
  ASSERT_TRUE(fleet.files.remove("manifest.json"));
  EXPECT_EQ(served(), print(body_of(2))) << "the last good one";
}

TEST_F(Serves, NothingThatMachinesWouldRefuse) {
  put(body_of(5));
  const std::string good = print(body_of(5));
  ASSERT_EQ(served(), good);
  const auto refused = [&](const std::string& text, const char* why) {
    put(text);
    EXPECT_EQ(served(), good);
    EXPECT_THAT(problem(), HasSubstr(why));
    EXPECT_THAT(fleet.all_said(), HasSubstr(why));
    EXPECT_THAT(json_of(fleet.send(get("/v1/rollout")))["problem"].get<std::string>(), HasSubstr(why));
  };
  refused("{}", "schema");
  refused(good.substr(0, good.size() / 2), "manifest");
  std::string changed = good;
  changed[changed.find("\"sig\":") + 10] ^= 1;
  refused(changed, "manifest");
  ManifestBody forged = body_of(6);
  forged.manifest = made::signed_by(made::manifest_document(6), {made::test_key(9)});
  refused(print(forged), "key");
  refused(print(body_of(4)), "manifest 4 is older than manifest 5, which was served");
  refused(print(body_of(5, {}, "w4")), "is another than the manifest 5 that was served");
  put(body_of(6));
  EXPECT_EQ(served(), print(body_of(6)));
  EXPECT_EQ(problem(), "");
}

TEST_F(Serves, ARotationWithoutAManifestUnderItIsSaid) {
  put(body_of(5));
  served();
  ManifestBody rotated = body_of(5);
  rotated.roots.push_back(made::signed_by(made::root_document(2), {made::root_key()}));
  put(rotated);
  EXPECT_EQ(served(), print(rotated)) << "machines follow the root";
  EXPECT_THAT(problem(), HasSubstr("manifest 5 was made under root 1, and root 2 is served with it"));
  EXPECT_THAT(fleet.all_said(), HasSubstr("no machine takes it until one is published"));
  EXPECT_THAT(fleet.send(get("/metrics")).body, HasSubstr("furlong_hub_manifest_problem 1\n"));
  ManifestDocument next = made::manifest_document(6);
  next.root = 2;
  rotated.manifest = made::signed_by(next, {made::publish_key()});
  put(rotated);
  EXPECT_EQ(served(), print(rotated));
  EXPECT_EQ(problem(), "");
}

TEST_F(Serves, AnUnreadableFileIsToldOnce) {
  put("{}");
  for (int i = 0; i < 5; ++i) served();
  const std::string said = fleet.all_said();
  EXPECT_EQ(said.find("none is served"), said.rfind("none is served"));
}

TEST_F(Serves, AStopIsSignedServedAndWritten) {
  put(body_of(3));
  served();
  const auto stop = fleet.hub().manifest().stop(made::stop_key(), 3);
  ASSERT_TRUE(stop) << stop.error().text();
  EXPECT_EQ(stop->from, 3u);
  const auto body = parse_manifest_body(*fleet.files.read("manifest.json"), "file");
  ASSERT_TRUE(body);
  EXPECT_EQ(check_body(*body)->stop->from, 3u);
  EXPECT_EQ(served(), *fleet.files.read("manifest.json"));
  EXPECT_TRUE(fleet.hub().manifest().now()->stopped());
  EXPECT_FALSE(fleet.hub().manifest().stop(made::stop_key(), 3)) << "never twice for one manifest";
  const Json rollout = json_of(fleet.send(get("/v1/rollout")));
  EXPECT_EQ(rollout["stop"]["from"], 3);
}

TEST_F(Serves, AWrongStopKey) {
  put(body_of(3));
  served();
  const auto stop = fleet.hub().manifest().stop(made::publish_key(), 3);
  ASSERT_FALSE(stop);
  EXPECT_THAT(stop.error().text(), HasSubstr("the hub's stop key"));
  EXPECT_EQ(served(), print(body_of(3)));
}

TEST_F(Serves, AStopIsServedAlsoWhenTheDiskIsFull) {
  put(body_of(3));
  served();
  bool full = true;
  fleet.files.fault = [&](std::string_view operation, const std::filesystem::path&) -> Status {
    return full && operation == "write" ? Status(fail(Code::exhausted, "disk full")) : Status();
  };
  ASSERT_TRUE(fleet.hub().manifest().stop(made::stop_key(), 3));
  EXPECT_TRUE(fleet.hub().manifest().now()->stopped());
  EXPECT_THAT(problem(), HasSubstr("the stop is served, but not in the file: disk full"));
  EXPECT_NE(served(), print(body_of(3)));
  full = false;
  const std::string now = served();
  EXPECT_EQ(*fleet.files.read("manifest.json"), now) << "written at the next look";
  EXPECT_EQ(problem(), "");
}

TEST_F(Serves, AStopThatAPublisherOverwroteIsPutBack) {
  put(body_of(3));
  served();
  ASSERT_TRUE(fleet.hub().manifest().stop(made::stop_key(), 3));
  put(body_of(4));  // made from what the publisher read before the stop
  served();
  EXPECT_TRUE(fleet.hub().manifest().now()->stopped());
  EXPECT_TRUE(check_body(*parse_manifest_body(*fleet.files.read("manifest.json"), "file"))->stop);
  put(body_of(5, {}, "u2-ldg", 1));
  served();
  EXPECT_FALSE(fleet.hub().manifest().now()->stopped()) << "a manifest that lifts it is without it";
}

/// What was judged is stopped, or nothing.
TEST_F(Serves, AStopIsNotSignedForAManifestThatCameMeanwhile) {
  put(body_of(3));
  served();
  put(body_of(4));  // and no look yet
  const auto stop = fleet.hub().manifest().stop(made::stop_key(), 3);
  ASSERT_FALSE(stop);
  EXPECT_THAT(stop.error().text(), HasSubstr("manifest 4 is served now, and not manifest 3"));
  EXPECT_FALSE(fleet.hub().manifest().now()->stopped());
  EXPECT_EQ(*fleet.files.read("manifest.json"), print(body_of(4))) << "what was published stays";
  EXPECT_EQ(served(), print(body_of(4)));
}

/// Also one that comes between the hub's look at the file and its writing.
TEST_F(Serves, AStopOverwritesNothingThatIsPublishedMeanwhile) {
  put(body_of(3));
  served();
  int reads = 0;
  bool publishes = false;
  fleet.files.fault = [&](std::string_view operation, const std::filesystem::path&) -> Status {
    if (operation == "read" && !publishes && ++reads == 2) {
      publishes = true;
      EXPECT_TRUE(fleet.files.write_atomic("manifest.json", print(body_of(4))));
    }
    return {};
  };
  ASSERT_TRUE(fleet.hub().manifest().stop(made::stop_key(), 3));
  EXPECT_TRUE(publishes);
  const auto checked = check_body(*parse_manifest_body(*fleet.files.read("manifest.json"), "file"));
  EXPECT_EQ(checked->manifest->version, 4u);
  ASSERT_TRUE(checked->stop) << "it holds from manifest 3 on, until one lifts it";
  EXPECT_EQ(checked->stop->from, 3u);
  EXPECT_EQ(served(), *fleet.files.read("manifest.json"));
}

TEST(Rollout, WhoFollowsWhat) {
  Serving serving;
  serving.checked = *check_body(body_of(7));
  std::vector<Machine> machines;
  const auto add = [&](std::uint8_t number, const std::string& manifest, bool canary = false) {
    machines.push_back(
        {.id = fmt::format("m{}", number), .key = made::test_key(number).public_key, .canary = canary});
    machines.back().manifest = manifest;
  };
  add(1, "7", true);
  add(2, "7");
  add(3, "6");
  add(4, "");
  add(5, "8");
  add(6, "6");
  machines.back().state = MachineState::retired;
  machines.push_back({.id = "import:x"});
  const Json json =
      rollout_json(serving, machines, {.manifest = 7, .machines = 1, .races = 4, .regressions = 0},
                   made::start_us + 31 * made::day_us);
  EXPECT_EQ(json["machines"], 5) << "neither the retired nor the imported";
  EXPECT_EQ(json["stragglers"], (Json{"m3", "m4"}));
  EXPECT_EQ(json["manifest"]["expired"], true);
  EXPECT_EQ(json["by_version"][2], (Json{{"manifest", "7"}, {"machines", 2}, {"canaries", 1}}));
  EXPECT_FALSE(json.contains("problem"));
  EXPECT_FALSE(json.contains("stop"));
  const Json none = rollout_json({}, machines, {}, 0);
  EXPECT_EQ(none["stragglers"], Json::array());
  EXPECT_FALSE(none.contains("manifest"));
}

}  // namespace
}  // namespace furlong::fleet
