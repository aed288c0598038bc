// A quarantine whose file is damaged, or cannot be there at all: it costs trials, not races.
#include "furlong/race/quarantine.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "furlong/base/log.h"
#include "furlong/base/sqlite.h"
#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Stage;

QuarantineEntry entry(const std::string& source) {
  return {{"card", "driver", source}, "program", "u2", "Label", "hang", "2026-01-01T00:00:00Z", false, ""};
}

void fill(const fs::path& file, int entries) {
  auto quarantine = Quarantine::open(file).value();
  for (int i = 0; i < entries; ++i) ASSERT_TRUE(quarantine.put(entry(fmt::format("source {:04}", i))));
}

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> make;
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all{
      {"truncated within the first page",
       [](const fs::path& file) {
         fill(file, 1);
         fs::resize_file(file, 1000);
       }},
      {"truncated later",
       [](const fs::path& file) {
         fill(file, 200);
         ASSERT_GT(fs::file_size(file), 12288u);
         fs::resize_file(file, 8192);
       }},
      {"other bytes", [](const fs::path& file) { std::ofstream(file) << std::string(5000, 'x'); }},
      {"a folder",
       [](const fs::path& file) {
         fs::create_directories(file);
         std::ofstream(file / "inside") << "x";
       }},
      {"a pipe", [](const fs::path& file) { ASSERT_EQ(mkfifo(file.c_str(), 0600), 0); }},
      {"a negative version",
       [](const fs::path& file) {
         fill(file, 1);
         ASSERT_TRUE(Database::open(file)->execute("PRAGMA user_version=-2147483648"));
       }},
      {"a database of something else",
       [](const fs::path& file) {
         auto database = Database::open(file);
         ASSERT_TRUE(database->execute("CREATE TABLE bookmarks (url TEXT)"));
         ASSERT_TRUE(database->execute("PRAGMA user_version=1"));
       }},
  };
  return all;
}

TEST(DamagedQuarantine, NamesTheMendAndIsPutAside) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.name);
    const auto folder = TemporaryFolder::make("quarantine").value();
    const fs::path file = folder.path() / "q.sqlite";
    damage.make(file);
    auto quarantine = Quarantine::open(file).value();
    const auto listed = quarantine.list();
    ASSERT_FALSE(listed);
    EXPECT_EQ(listed.error().code(), Code::corrupt);
    EXPECT_THAT(listed.error().text(), HasSubstr("the quarantine " + file.string() + ": "));
    EXPECT_THAT(listed.error().text(), HasSubstr("furlong quarantine clear --all"));
    EXPECT_THAT(listed.error().text(), Not(HasSubstr("newer")));
    EXPECT_FALSE(quarantine.find({"card", "driver", "s"}));
    EXPECT_TRUE(quarantine.put(entry("s"))) << "told already";
    EXPECT_FALSE(quarantine.clear("u2")) << "only --all puts it aside";
    EXPECT_TRUE(fs::exists(fs::symlink_status(file)));

    std::string warned;
    const LogSink before = set_log_sink([&](LogLevel, std::string_view text) { warned += text; });
    const auto cleared = quarantine.clear("");
    set_log_sink(before);
    ASSERT_TRUE(cleared) << cleared.error().text();
    EXPECT_EQ(*cleared, 0);
    EXPECT_THAT(warned, HasSubstr("q.sqlite.broken-1"));
    EXPECT_TRUE(fs::exists(fs::symlink_status(folder.path() / "q.sqlite.broken-1")));
    ASSERT_TRUE(quarantine.put(entry("s")));
    EXPECT_EQ(Quarantine::open(file)->list().value().size(), 1u);
  }
}

TEST(DamagedQuarantine, ManyArePutAsideSideBySide) {
  const auto folder = TemporaryFolder::make("quarantine").value();
  const fs::path file = folder.path() / "q.sqlite";
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(system_files().write_atomic(file, std::string(2000, *text)));
    EXPECT_TRUE(Quarantine::open(file).value().clear(""));
  }
  EXPECT_EQ(*system_files().read(file.string() + ".broken-1"), std::string(2000, 'f'));
  EXPECT_EQ(*system_files().read(file.string() + ".broken-2"), std::string(2000, 's'));
}

TEST(DamagedQuarantine, OfANewerFurlongIsLeftAlone) {
  const auto folder = TemporaryFolder::make("quarantine").value();
  const fs::path file = folder.path() / "q.sqlite";
  fill(file, 1);
  ASSERT_TRUE(Database::open(file)->execute("PRAGMA user_version=7"));
  auto quarantine = Quarantine::open(file).value();
  const auto cleared = quarantine.clear("");
  ASSERT_FALSE(cleared);
  EXPECT_EQ(cleared.error().code(), Code::incompatible);
  EXPECT_THAT(cleared.error().text(), HasSubstr("newer Furlong"));
  EXPECT_THAT(cleared.error().text(), HasSubstr("move the file away"));
  EXPECT_FALSE(fs::exists(file.string() + ".broken-1"));
}

TEST(DamagedQuarantine, APlaceThatCannotBeIsDeniedWithTheMend) {
  const auto folder = TemporaryFolder::make("quarantine").value();
  ASSERT_TRUE(system_files().write_atomic(folder.path() / "file", "x"));
  for (const fs::path& file : {fs::path("/proc/furlong/q.sqlite"), folder.path() / "file" / "q.sqlite"}) {
    auto quarantine = Quarantine::open(file).value();
    for (const bool first : {true, false}) EXPECT_EQ(quarantine.put(entry("s")).has_value(), !first);
    for (const auto& error : {quarantine.list().error(), quarantine.clear("").error()}) {
      EXPECT_EQ(error.code(), Code::denied);
      EXPECT_THAT(error.text(), HasSubstr(file.string()));
      EXPECT_THAT(error.text(), HasSubstr("FURLONG_STATE_DIR"));
    }
  }
}

TEST(DamagedQuarantine, AFullDiskIsToldWithTheMend) {
  const auto folder = TemporaryFolder::make("quarantine").value();
  auto disk = std::make_optional<testing::FullDisk>();
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  const auto found = quarantine.find({"card", "driver", "s"});
  disk.reset();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::exhausted) << found.error().text();
  EXPECT_THAT(found.error().text(), HasSubstr("free some space"));
}

TEST(DamagedQuarantine, ARaceGoesOnWithOneNote) {
  std::vector<Damage> all = damages();
  all.push_back({"no place", [](const fs::path& file) { std::ofstream(file.parent_path()) << "x"; }});
  for (const Damage& damage : all) {
    SCOPED_TRACE(damage.name);
    const auto folder = TemporaryFolder::make("quarantine").value();
    fs::path file = folder.path() / "q.sqlite";
    if (std::string_view(damage.name) == "no place") file = folder.path() / "state" / "q.sqlite";
    damage.make(file);
    auto quarantine = Quarantine::open(file).value();
    Stage stage;
    stage.context.quarantine = &quarantine;
    // Two that hang: each would be written down.
    for (const char* name : {"u2", "u4"})
      stage.sim.faults.push_back({.variant = name, .fault = device::SimFault::hang, .after_launches = 0});
    const auto raced = stage.race("u2,u4,u8");
    ASSERT_TRUE(raced) << raced.error().text();
    int notes = 0;
    for (const std::string& note : raced->notes) {
      if (note.find("quarantine") == note.npos) continue;
      ++notes;
      EXPECT_THAT(note, HasSubstr(file.string()));
      EXPECT_THAT(note, ::testing::AnyOf(HasSubstr("clear --all"), HasSubstr("FURLONG_STATE_DIR")));
    }
    EXPECT_EQ(notes, 1);
  }
}

}  // namespace
}  // namespace furlong::race
