// Against a folder that looks as the system's does: a test must not depend on a control group that it may
// write.
#include "furlong/base/os/internal/child_group.h"

#include <gtest/gtest.h>

#include "furlong/base/os/file.h"

namespace furlong::internal {
namespace {

namespace fs = std::filesystem;

class ChildGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("child-group");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
  }
  fs::path root() const { return folder_->path(); }
  void write(const fs::path& file, std::string_view text) const {
    ASSERT_TRUE(system_files().write_atomic(file, text));
  }
  std::string read(const fs::path& file) const { return system_files().read(file).value_or("(absent)"); }
  /// What the system puts into a new group.
  auto filler(std::string_view peak) {
    return [this, peak](const fs::path& made) {
      made_ = made;
      for (const char* name :
           {"cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max", "memory.oom.group"})
        write(made / name, "");
      write(made / "memory.events", "low 0\noom_kill 0\n");
      if (!peak.empty()) write(made / "memory.peak", peak);
    };
  }

  std::optional<TemporaryFolder> folder_;
  fs::path made_;
};

TEST_F(ChildGroupTest, IsMadeBesideTheOwnOneWhereMembersCountMemory) {
  write(root() / "slice/cgroup.subtree_control", "cpu memory pids\n");
  write(root() / "slice/own/cgroup.subtree_control", "\n");
  {
    const auto group = ChildGroup::make("1:cpu:/x\n0::/slice/own\n", root(), 12345, filler("777\n"));
    ASSERT_TRUE(group);
    EXPECT_EQ(group->path(), made_);
    EXPECT_EQ(made_.parent_path(), root() / "slice");
    EXPECT_EQ(read(made_ / "memory.max"), "12345");
    EXPECT_EQ(read(made_ / "memory.swap.max"), "0");
    EXPECT_EQ(read(made_ / "memory.oom.group"), "1");
    EXPECT_EQ(group->peak_bytes(), 777u);
    EXPECT_FALSE(group->killed_for_memory());
    write(made_ / "memory.events", "low 0\noom 1\noom_kill 2\n");
    EXPECT_TRUE(group->killed_for_memory());
    EXPECT_EQ(read(made_ / "cgroup.kill"), "");
  }
  EXPECT_EQ(read(made_ / "cgroup.kill"), "1") << "nobody is left in it";
}

TEST_F(ChildGroupTest, IsMadeBelowTheRootOfAContainer) {
  write(root() / "cgroup.subtree_control", "memory");
  const auto group = ChildGroup::make("0::/\n", root(), 0, filler("1"));
  ASSERT_TRUE(group);
  EXPECT_EQ(made_.parent_path(), root());
  EXPECT_EQ(read(made_ / "memory.max"), "") << "no limit was asked for";
}

TEST_F(ChildGroupTest, IsNotMadeWhereNothingCountsMemory) {
  EXPECT_FALSE(ChildGroup::make("0::/slice/own\n", root(), 0)) << "no such hierarchy";
  write(root() / "slice/cgroup.subtree_control", "cpu pids");
  write(root() / "slice/own/cgroup.subtree_control", "");
  EXPECT_FALSE(ChildGroup::make("0::/slice/own\n", root(), 0)) << "not counted";
  EXPECT_FALSE(ChildGroup::make("4:memory:/own\n", root(), 0)) << "version 1 alone";
  write(root() / "slice/cgroup.subtree_control", "memory");
  EXPECT_FALSE(ChildGroup::make("0::/slice/own\n", root(), 0, filler(""))) << "a kernel without memory.peak";
  EXPECT_FALSE(ChildGroup::make("0::/slice/own\n", root(), 0)) << "nothing in the new folder";
  EXPECT_EQ(read(root() / "slice/cgroup.subtree_control"), "memory") << "nothing else is touched";
}

}  // namespace
}  // namespace furlong::internal
