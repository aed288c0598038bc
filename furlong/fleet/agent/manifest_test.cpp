#include "furlong/fleet/agent/manifest.h"

#include <gmock/gmock.h>

#include "furlong/base/os/file.h"

namespace furlong::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeSource : public ManifestSource {
 public:
  Result<std::optional<std::string>> fetch(const std::stop_token&) override {
    if (away) return fail(Code::unavailable, "no hub");
    return next;
  }
  void taken() override { next.reset(); }
  bool away = false;
  std::optional<std::string> next = "body";
};

class FakeVerifier : public ManifestVerifier {
 public:
  Result<VerifiedManifest> verify(std::string_view) override {
    ++verified;
    return standing();
  }
  Result<VerifiedManifest> standing() override {
    if (unknown) return fail(Code::corrupt, "a torn state");
    return now;
  }
  VerifiedManifest now{.version = "7", .tuning = "{}\n", .tuning_override = "[]\n", .note = {}};
  bool unknown = false;
  int verified = 0;
};

class FollowerTest : public testing::Test {
 protected:
  Status step() { return follower.step({}); }
  FakeSource source;
  FakeVerifier verifier;
  FakeFiles files;
  std::vector<std::string> notes;
  ManifestFollower follower{source, verifier, files, "/data",
                            [this](std::string text) { notes.push_back(std::move(text)); }};
};

TEST_F(FollowerTest, WhatLapsesIsWithdrawnAlsoWithoutTheHub) {
  ASSERT_TRUE(step());
  EXPECT_EQ(*files.read("/data/tuning.json"), "{}\n");
  EXPECT_EQ(*files.read("/data/override.json"), "[]\n");
  notes.clear();
  source.away = true;
  verifier.now = {.version = "7", .tuning = {}, .tuning_override = {}, .note = "the manifest expired"};
  for (int look = 0; look < 3; ++look) EXPECT_FALSE(step()) << "the hub is away, and that is said";
  EXPECT_FALSE(files.exists("/data/tuning.json"));
  EXPECT_FALSE(files.exists("/data/override.json"));
  EXPECT_THAT(notes,
              ElementsAre("manifest 7: the manifest expired; workers race in full",
                          "manifest 7: tuning.json is no more", "manifest 7: override.json is no more"));
}

TEST_F(FollowerTest, WithoutKnowingWhatStandsTheFilesStay) {
  ASSERT_TRUE(step());
  verifier.unknown = true;
  EXPECT_EQ(step().error().code(), Code::corrupt);
  EXPECT_TRUE(files.exists("/data/tuning.json"));
}

TEST_F(FollowerTest, AFileThatCouldNotBeWrittenIsWrittenAtTheNextLook) {
  files.fault = [](std::string_view operation, const std::filesystem::path&) -> Status {
    return operation == "write" ? Status(fail(Code::exhausted, "no space left")) : Status();
  };
  EXPECT_EQ(step().error().code(), Code::exhausted);
  files.fault = {};
  ASSERT_TRUE(step());
  EXPECT_EQ(verifier.verified, 1) << "the hub had nothing new to say";
  EXPECT_TRUE(files.exists("/data/tuning.json"));
}

TEST(Follower, ALinkInPlaceOfTheTuningIsNotFollowed) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("follower"));
  const auto victim = folder.path() / "victim";
  ASSERT_TRUE(system_files().write_atomic(victim, "precious"));
  std::filesystem::create_symlink(victim, folder.path() / "tuning.json");
  FakeSource source;
  FakeVerifier verifier;
  ManifestFollower follower(source, verifier, system_files(), folder.path(), [](const std::string&) {});
  const Status done = follower.step({});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("a symbolic link stands there"));
  EXPECT_EQ(*system_files().read(victim), "precious");
}

}  // namespace
}  // namespace furlong::fleet
