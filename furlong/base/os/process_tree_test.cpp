#include "furlong/base/os/process_tree.h"

#include <gtest/gtest.h>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"

namespace furlong {
namespace {

constexpr double ample_s = 60;
constexpr std::uint64_t MiB = 1u << 20;
/// A shell that has filled 48 MiB.
const std::string kLarge = "x=$(head -c 48M /dev/zero | tr '\\0' a)\n";
/// Of these: where memory is short, or is looked over for what lies idle, the system takes pages back.
constexpr std::uint64_t kLeast = 32 * MiB;

std::unique_ptr<Child> start(const std::string& script) {
  auto child = system_processes().start({.argv = {"sh", "-c", script}});
  EXPECT_TRUE(child) << child.error().text();
  return std::move(*child);
}

void expect_line(Child& child, const std::string& wanted) {
  const auto line = child.read_line(ample_s);
  ASSERT_TRUE(line && *line);
  EXPECT_EQ(**line, wanted);
}

TEST(ProcessTree, GrandchildrenCount) {
  const auto child = start("(" + kLarge + "echo ready; read -r line; :); :");
  ProcessTree tree(child->pid());
  expect_line(*child, "ready");
  const std::uint64_t bytes = tree.sample();
  EXPECT_GT(bytes, kLeast);
  EXPECT_EQ(tree.peak_bytes(), bytes);
  ASSERT_TRUE(child->write("\n"));
  EXPECT_EQ(child->wait(ample_s).exit_code, 0);
  EXPECT_EQ(tree.sample(), 0u);
  EXPECT_EQ(tree.peak_bytes(), bytes) << "the peak stays";
}

TEST(ProcessTree, PagesOfALargeProcessThatForkedCountOnce) {
  const auto child = start(kLarge +
                           "(echo 1; read -r line; :) & (echo 2; sleep 1000; :) & (echo 3; sleep 1000; :) & "
                           "echo 4; read -r line");
  ProcessTree tree(child->pid());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(child->read_line(ample_s));
  const std::uint64_t bytes = tree.sample();
  EXPECT_GT(bytes, kLeast);
  // What the shell freed may be left in it as well; four times as much it is not.
  EXPECT_LT(bytes, 3 * 48 * MiB);
  child->kill();
}

TEST(ProcessTree, WhoLeavesTheGroupIsFoundAndKilled) {
  // A session of its own, whose parent ends: neither the group nor the parents lead to it any more.
  const auto child = start("(setsid sh -c 'echo $$; sleep 1000' & echo started; read -r line); read -r line");
  ProcessTree tree(child->pid());
  int lines = 0;
  while (lines < 2 && child->read_line(ample_s)) ++lines;
  EXPECT_GT(tree.sample(), 0u);
  ASSERT_TRUE(child->write("\n"));
  ASSERT_TRUE(child->write("\n"));
  child->kill();
  EXPECT_GT(tree.sample(), 0u) << "the one that left";
  EXPECT_TRUE(tree.kill());
  EXPECT_EQ(tree.sample(), 0u);
}

TEST(ProcessTree, OneThatHasEndedIsEmpty) {
  const auto child = start("exit 0");
  const int pid = child->pid();
  child->wait(ample_s);
  ProcessTree tree(pid);
  EXPECT_EQ(tree.sample(), 0u);
  EXPECT_TRUE(tree.kill());
}

}  // namespace
}  // namespace furlong
