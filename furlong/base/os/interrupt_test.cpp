#include "furlong/base/os/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;

// An application: it makes a temporary folder and a child, says so, and is told to end. Runs in a second
// process of this program, in the same test.
[[noreturn]] void application(const fs::path& reports, bool obeys) {
  const std::stop_token stop = stop_on_interrupt();
  if (stop_on_interrupt() != stop) _exit(10);
  auto folder = TemporaryFolder::make("interrupted");
  if (!folder) _exit(11);
  std::ofstream(folder->path() / "f") << "x";
  auto child = system_processes().start({.argv = {"sh", "-c", "sleep 1000 & echo $!; sleep 1000"}});
  if (!child) _exit(12);
  const auto grandchild = (*child)->read_line(60);
  if (!grandchild || !*grandchild) _exit(13);
  const std::string text =
      fmt::format("{}\n{}\n{}\n", folder->path().string(), (*child)->pid(), **grandchild);
  if (!system_files().write_atomic(reports / "ready", text)) _exit(14);
  while (!stop.stop_requested()) system_clock().sleep_ns(1'000'000);
  if (!system_files().write_atomic(reports / "stopping", std::to_string(interrupt_signal()))) _exit(15);
  if (obeys) {
    child->reset();
    folder = fail(Code::internal, "given up");  // _exit runs no destructors
    _exit(0);
  }
  for (;;) pause();  // hangs, so that people press Ctrl-C once more
}

class Interrupt : public testing::TestWithParam<bool> {
 protected:
  static void wait_for(const fs::path& file) {
    while (!fs::exists(file)) system_clock().sleep_ns(1'000'000);
  }
  static bool gone_soon(int pid) {
    for (int i = 0; i < 3000; ++i) {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string text;
      std::getline(stat, text);
      const std::size_t state = text.rfind(") ");
      if (state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X') return true;
      system_clock().sleep_ns(10'000'000);
    }
    return false;
  }
};
INSTANTIATE_TEST_SUITE_P(Obeying, Interrupt, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Hanging, Interrupt, testing::Values(false));

TEST_P(Interrupt, LeavesNoProcessAndNoFolder) {
  const bool obeys = GetParam();
  if (const char* folder = std::getenv("FURLONG_TEST_APPLICATION_IN")) application(folder, obeys);
  const TemporaryFolder reports = std::move(*TemporaryFolder::make("interrupt"));
  const std::string filter = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() +
                             std::string(".") + testing::UnitTest::GetInstance()->current_test_info()->name();
  auto started = system_processes().start({.argv = {own_executable()->string(), "--gtest_filter=" + filter},
                                           .environment = {{"FURLONG_TEST_APPLICATION_IN", reports.path()}}});
  ASSERT_TRUE(started) << started.error().text();
  const int pid = (*started)->pid();
  wait_for(reports.path() / "ready");
  const auto lines = split(*system_files().read(reports.path() / "ready"), '\n');
  ASSERT_GE(lines.size(), 3u);
  EXPECT_TRUE(fs::exists(lines[0]));
  kill(pid, SIGINT);
  wait_for(reports.path() / "stopping");
  EXPECT_EQ(*system_files().read(reports.path() / "stopping"), std::to_string(SIGINT));
  if (!obeys) kill(pid, SIGTERM);
  const ProcessEnd end = (*started)->wait(100);
  EXPECT_EQ(end.exit_code, obeys ? 0 : 128 + SIGTERM) << end.text();
  EXPECT_FALSE(fs::exists(lines[0])) << lines[0];
  EXPECT_TRUE(gone_soon(static_cast<int>(*parse_integer(lines[1]))));
  EXPECT_TRUE(gone_soon(static_cast<int>(*parse_integer(lines[2]))));
}

}  // namespace
}  // namespace furlong
