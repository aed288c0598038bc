#include "furlong/base/os/measured_process.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong {
namespace {

constexpr std::uint64_t MiB = 1u << 20;

MeasuredRequest shell(std::string script, std::uint64_t cap_bytes = 0) {
  MeasuredRequest request;
  request.process.argv = {"sh", "-c", std::move(script)};
  request.memory_cap_bytes = cap_bytes;
  return request;
}

MeasuredEnd run(const MeasuredRequest& request) {
  auto end = run_measured(request);
  EXPECT_TRUE(end) << end.error().text();
  return end ? *end : MeasuredEnd{};
}

bool gone_soon(int pid) {
  for (int i = 0; i < 3000; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t state = text.rfind(") ");
    if (state == text.npos || text[state + 2] == 'Z') return true;
    system_clock().sleep_ns(10'000'000);
  }
  return false;
}

TEST(MeasuredProcess, TellsTheEndTheTimesAndThePeak) {
  const MeasuredEnd end =
      run(shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo out; echo err >&2; exit 3"));
  EXPECT_EQ(end.end.exit_code, 3);
  EXPECT_EQ(end.end.standard_output, "out\n");
  EXPECT_EQ(end.end.standard_error, "err\n");
  EXPECT_GT(end.seconds, 0);
  EXPECT_GT(end.end.user_s + end.end.system_s, 0);
  EXPECT_GT(end.peak_bytes, 100u << 10);
  EXPECT_FALSE(end.over_cap);
}

TEST(MeasuredProcess, ThePeakIsThatOfTheLargestChildAtLeast) {
  const MeasuredEnd end = run(shell("dd if=/dev/zero of=/dev/null bs=300M count=1 2>&1; :"));
  EXPECT_EQ(end.end.exit_code, 0);
  EXPECT_GT(end.peak_bytes, 300 * MiB);
  EXPECT_LT(end.peak_bytes, 400 * MiB);
}

TEST(MeasuredProcess, ATreeOverTheCapIsKilled) {
  // Each of the two is under the cap, both are not; without the kill it would not end.
  const std::string half = "(x=$(head -c 48M /dev/zero | tr '\\0' a); sleep 1000; :) & ";
  const MeasuredEnd end = run(shell(half + half + "wait", 80 * MiB));
  EXPECT_TRUE(end.over_cap);
  EXPECT_EQ(end.end.signal, SIGKILL) << end.end.text();
  EXPECT_FALSE(end.end.stopped);
  EXPECT_FALSE(end.end.timed_out);
  if (end.meter == MemoryMeter::sampled) {
    EXPECT_GT(end.peak_bytes, 80 * MiB);
  }
}

TEST(MeasuredProcess, APeakThatWasSeenOnlyAfterwardsIsOverTheCapToo) {
  const MeasuredEnd end = run(shell("dd if=/dev/zero of=/dev/null bs=300M count=1 2>&1; :", 200 * MiB));
  EXPECT_TRUE(end.over_cap);
}

TEST(MeasuredProcess, UnderTheCapNothingHappens) {
  const MeasuredEnd end = run(shell("x=$(head -c 16M /dev/zero | tr '\\0' a); echo done", 512 * MiB));
  EXPECT_FALSE(end.over_cap);
  EXPECT_EQ(end.end.exit_code, 0);
  EXPECT_EQ(end.end.standard_output, "done\n");
}

TEST(MeasuredProcess, AddressSpaceIsLimitedGenerouslyWhereNothingElseIs) {
  EXPECT_EQ(address_space_limit(1ull << 30), 24ull << 30);
  EXPECT_EQ(address_space_limit(~0ull), 1ull << 62);
  MeasuredRequest request = shell("ulimit -v", 1ull << 30);
  const MeasuredEnd limited = run(request);
  if (limited.meter == MemoryMeter::sampled) {
    EXPECT_EQ(limited.end.standard_output, fmt::format("{}\n", 24ull << 20)) << "in KiB";
  }
  request.any_address_space = true;
  const std::string free = run(request).end.standard_output;
  request = shell("ulimit -v");
  EXPECT_EQ(run(request).end.standard_output, free) << "as it was found";
}

TEST(MeasuredProcess, ATimeoutAndAStopEndTheTree) {
  MeasuredRequest request = shell("sleep 1000");
  request.timeout_s = 0.01;
  EXPECT_TRUE(run(request).end.timed_out);

  const TemporaryFolder folder = std::move(*TemporaryFolder::make("measured"));
  request = shell("sleep 1000 & echo $!; touch started; wait");
  request.process.folder = folder.path();
  std::stop_source stop;
  request.stop = stop.get_token();
  std::jthread stopper([&] {
    while (!system_files().exists(folder.path() / "started")) system_clock().sleep_ns(1'000'000);
    stop.request_stop();
  });
  const MeasuredEnd end = run(request);
  EXPECT_TRUE(end.end.stopped);
  EXPECT_FALSE(end.over_cap);
  EXPECT_TRUE(gone_soon(static_cast<int>(*parse_integer(trim(end.end.standard_output)))));
  EXPECT_TRUE(run(request).end.stopped) << "nothing is started after the stop";
}

TEST(MeasuredProcess, NobodyWhoLeftTheGroupIsLeft) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("measured"));
  // It ends when the one that left has surely been seen: that is, over the cap.
  MeasuredRequest request = shell(
      "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; x=$(head -c 64M /dev/zero | tr \"\\0\" a); sleep "
      "1000'",
      48 * MiB);
  request.process.folder = folder.path();
  EXPECT_TRUE(run(request).over_cap);
  const auto pid = system_files().read(folder.path() / "pid");
  ASSERT_TRUE(pid);
  EXPECT_TRUE(gone_soon(static_cast<int>(*parse_integer(trim(*pid)))));
}

// Whether the group has its guard by now.
bool is_guarded(int group) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat"), command(entry.path() / "cmdline");
    std::string text, line;
    std::getline(stat, text);
    std::getline(command, line, '\n');
    const std::size_t name_end = text.rfind(") ");
    if (name_end == text.npos || line.find("kill -KILL 0") == line.npos) continue;
    if (split(text.substr(name_end + 2), ' ')[2] == std::to_string(group)) return true;
  }
  return false;
}

// The parent is a second process of this program, running this same test, which is killed.
TEST(MeasuredProcess, TheTreeDiesWithThisProcess) {
  if (const char* folder = std::getenv("FURLONG_TEST_PARENT_IN")) {
    MeasuredRequest request = shell("sleep 1000 & echo $$ $! > pid.new; mv pid.new pid; wait");
    request.process.folder = folder;
    run(request);
    return;
  }
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("measured"));
  const auto parent = system_processes().start(
      {.argv = {own_executable()->string(), "--gtest_filter=MeasuredProcess.TheTreeDiesWithThisProcess"},
       .environment = {{"FURLONG_TEST_PARENT_IN", folder.path().string()}}});
  ASSERT_TRUE(parent);
  while (!system_files().exists(folder.path() / "pid")) system_clock().sleep_ns(1'000'000);
  const auto pids = split(trim(*system_files().read(folder.path() / "pid")), ' ');
  ASSERT_EQ(pids.size(), 2u);
  const int leader = static_cast<int>(*parse_integer(pids[0]));
  while (!is_guarded(leader)) system_clock().sleep_ns(1'000'000);
  EXPECT_EQ((*parent)->kill().signal, SIGKILL);
  EXPECT_TRUE(gone_soon(leader));
  EXPECT_TRUE(gone_soon(static_cast<int>(*parse_integer(pids[1]))));
}

TEST(MeasuredProcess, AProgramThatIsNotThereIsNamed) {
  MeasuredRequest request;
  request.process.argv = {"no-such-program"};
  const auto end = run_measured(request);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), Code::unavailable);
  EXPECT_THAT(end.error().text(), testing::HasSubstr("no-such-program"));
}

TEST(MeasuredProcess, MetersHaveNames) {
  EXPECT_EQ(memory_meter_name(MemoryMeter::control_group), "control group");
  EXPECT_EQ(memory_meter_name(MemoryMeter::sampled), "sampled");
}

}  // namespace
}  // namespace furlong
