#include "furlong/base/os/process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double ample_s = 60;  // no test may depend on how fast the machine is

ProcessRequest shell(std::string script) { return {.argv = {"sh", "-c", std::move(script)}}; }

ProcessEnd run(const ProcessRequest& request, double timeout_s = ample_s) {
  auto end = system_processes().run(request, timeout_s);
  EXPECT_TRUE(end) << end.error().text();
  return end ? *end : ProcessEnd{};
}

std::unique_ptr<Child> start(const ProcessRequest& request) {
  auto child = system_processes().start(request);
  EXPECT_TRUE(child) << child.error().text();
  return std::move(*child);
}

std::string line_of(Child& child) {
  const auto line = child.read_line(ample_s);
  EXPECT_TRUE(line && *line);
  return line && *line ? **line : "";
}

bool alive(int pid) {
  // A zombie that its new parent has not collected yet is dead for us.
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t state = text.rfind(") ");
  return state != std::string::npos && text[state + 2] != 'Z' && text[state + 2] != 'X';
}

bool gone_soon(int pid) {
  for (int i = 0; i < 3000; ++i) {
    if (!alive(pid)) return true;
    system_clock().sleep_ns(10'000'000);
  }
  return false;
}

int number(std::string_view text) { return static_cast<int>(*parse_integer(trim(text))); }

TEST(Process, OutputErrorAndExitCode) {
  const ProcessEnd end = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(end.standard_output, "out\n");
  EXPECT_EQ(end.standard_error, "err\n");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(end.timed_out);
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(end.text(), "exit status 3");
}

TEST(Process, ASignalIsTold) {
  const ProcessEnd end = run(shell("kill -SEGV $$"));
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.text(), "killed by signal 11 (Segmentation fault)");
}

TEST(Process, InputFolderAndEnvironment) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  ProcessRequest request = shell("cat; pwd; echo \"$FURLONG_TEST_X,$HOME\"");
  request.input = std::string(300'000, 'i');  // more than a pipe holds
  request.folder = folder.path();
  request.environment = {{"FURLONG_TEST_X", "a b"}, {"HOME", "/nowhere"}};
  const ProcessEnd end = run(request);
  EXPECT_EQ(end.standard_output, request.input + fs::canonical(folder.path()).string() + "\na b,/nowhere\n");
}

TEST(Process, InputNobodyReadsDoesNotKillUs) {
  ProcessRequest request = shell("exit 0");
  request.input = std::string(1'000'000, 'i');
  EXPECT_EQ(run(request).exit_code, 0);
  for (int i = 0; i < 20; ++i) {
    const auto quick = start(shell("read -r line"));
    EXPECT_TRUE(quick->write("x\n")) << "it got all, and that it has ended since is no error";
  }
  const auto child = start(shell("exec 0<&-; echo closed; sleep 1000"));
  EXPECT_EQ(line_of(*child), "closed");
  const Status status = child->write("x\n");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::unavailable);
}

TEST(Process, WhatCannotBeStarted) {
  const auto error_of = [](const ProcessRequest& request) {
    const auto child = system_processes().start(request);
    EXPECT_FALSE(child);
    return child ? Error(Code::internal, "") : child.error();
  };
  const Error absent = error_of({.argv = {"furlong-no-such-program"}});
  EXPECT_EQ(absent.code(), Code::unavailable);
  EXPECT_THAT(absent.text(), HasSubstr("'furlong-no-such-program' is not in PATH"));
  EXPECT_EQ(error_of({.argv = {"./furlong-none"}}).code(), Code::unavailable);
  EXPECT_EQ(error_of({.argv = {}}).code(), Code::invalid);
  EXPECT_EQ(error_of({.argv = {""}}).code(), Code::unavailable);
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  std::ofstream(folder.path() / "plain") << "x";
  EXPECT_EQ(error_of({.argv = {(folder.path() / "plain").string()}}).code(), Code::denied);
  fs::permissions(folder.path() / "plain", fs::perms::owner_all);
  EXPECT_EQ(error_of({.argv = {(folder.path() / "plain").string()}}).code(), Code::invalid);
  ProcessRequest nowhere = shell("true");
  nowhere.folder = folder.path() / "none";
  const Error no_folder = error_of(nowhere);
  EXPECT_EQ(no_folder.code(), Code::unavailable);
  EXPECT_THAT(no_folder.text(), HasSubstr("none: cannot be the working folder"));
}

TEST(Process, PathOfTheRequestIsSearched) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  std::ofstream(folder.path() / "furlong-tool") << "#!/bin/sh\necho tool\n";
  fs::permissions(folder.path() / "furlong-tool", fs::perms::owner_all);
  ProcessRequest request{.argv = {"furlong-tool"}};
  request.environment = {{"PATH", "/nonexistent::" + folder.path().string() + ":/bin"}};
  EXPECT_EQ(run(request).standard_output, "tool\n");
}

TEST(Process, ATimeoutKillsGrandchildrenToo) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  ProcessRequest request = shell("sh -c 'echo $$ > pid.new; mv pid.new pid; sleep 1000' & sleep 1000");
  request.folder = folder.path();
  const auto child = start(request);
  while (!fs::exists(folder.path() / "pid")) system_clock().sleep_ns(1'000'000);
  const int grandchild = number(*system_files().read(folder.path() / "pid"));
  ASSERT_TRUE(alive(grandchild));
  const ProcessEnd end = child->wait(0.01);
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end.text(), "ran past 0.0 s and was killed");
  EXPECT_TRUE(gone_soon(grandchild));
}

TEST(Process, NoDescendantOutlivesTheLeaderOrTheObject) {
  // The leader ends by itself, while its child holds the pipes.
  const ProcessEnd end = run(shell("sleep 1000 & echo $!"));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(gone_soon(number(end.standard_output)));
  int leader = 0;
  int grandchild = 0;
  {
    const auto child = start(shell("sleep 1000 & echo $!; sleep 1000"));
    leader = child->pid();
    grandchild = number(line_of(*child));
    EXPECT_TRUE(alive(leader));
  }
  EXPECT_TRUE(gone_soon(leader));
  EXPECT_TRUE(gone_soon(grandchild));
}

TEST(Process, AChattyChildStillTimesOut) {
  const ProcessEnd end = run(shell("while :; do echo noise; echo noise >&2; done"), 0.05);
  EXPECT_TRUE(end.timed_out);
  const auto child = start(shell("while :; do echo noise >&2; done"));
  const auto line = child->read_line(0.05);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), Code::timeout);
}

TEST(Process, TheStopTokenEndsARun) {
  std::stop_source source;
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  ProcessRequest request = shell("touch started; sleep 1000");
  request.folder = folder.path();
  std::jthread stopper([&] {
    while (!fs::exists(folder.path() / "started")) system_clock().sleep_ns(1'000'000);
    source.request_stop();
  });
  const auto end = system_processes().run(request, 1000, source.get_token());
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
  EXPECT_FALSE(end->timed_out);
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_EQ(end->text(), "was stopped");
  stopper.join();
  fs::remove(folder.path() / "started");
  const auto at_once = system_processes().run(request, 1000, source.get_token());
  ASSERT_TRUE(at_once);
  EXPECT_TRUE(at_once->stopped);
  EXPECT_FALSE(fs::exists(folder.path() / "started")) << "nothing is started after the stop";
}

TEST(Process, AnInterruptedGroupHasItsGraceToEnd) {
  // Without SIGTERM this would last; who ignores it ends with its leader.
  ProcessRequest request =
      shell("trap 'echo bye; exit 7' TERM; (trap '' TERM; sleep 1000) & echo $!; while :; do wait; done");
  request.grace_s = 1000;
  const auto child = start(request);
  const int grandchild = number(line_of(*child));
  child->interrupt();
  const ProcessEnd end = child->wait(ample_s);
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(end.standard_output, "bye\n");
  EXPECT_TRUE(end.stopped);
  EXPECT_FALSE(end.timed_out);
  EXPECT_TRUE(gone_soon(grandchild));
}

TEST(Process, PastItsGraceTheGroupIsKilled) {
  ProcessRequest request = shell("trap '' TERM; sleep 1000 & echo $!; while :; do wait; done");
  request.grace_s = 0.05;
  const auto child = start(request);
  const int grandchild = number(line_of(*child));
  child->interrupt();
  const ProcessEnd end = child->wait(ample_s);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_TRUE(end.stopped);
  EXPECT_FALSE(end.timed_out);
  EXPECT_TRUE(gone_soon(grandchild));
}

TEST(Process, LinesStreamBothWays) {
  const auto child = start(shell("while read -r line; do echo \"got $line\"; done; printf 'no newline'"));
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(child->write(fmt::format("{}\n", i)));
    ASSERT_EQ(line_of(*child), fmt::format("got {}", i));
  }
  const auto nothing = child->read_line(0.01);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), Code::timeout);
  ASSERT_TRUE(child->write("still there\n"));
  EXPECT_EQ(line_of(*child), "got still there");
  child->close_input();
  EXPECT_EQ(line_of(*child), "no newline");
  EXPECT_EQ(*child->read_line(ample_s), std::nullopt);
  EXPECT_EQ(child->wait(ample_s).exit_code, 0);
}

TEST(Process, LinesComeWholeWhateverTheirLength) {
  const auto child =
      start(shell("awk 'BEGIN { for (i = 0; i < 300; i++) { s = \"\"; for (j = 0; j < (i * 37) % 1000; j++) "
                  "s = s \"xyz\"; print i \":\" s; print \"\" } }'"));
  for (int i = 0; i < 300; ++i) {
    const std::string line = line_of(*child);
    ASSERT_EQ(line.size(), std::to_string(i).size() + 1 + static_cast<std::size_t>(i * 37 % 1000) * 3);
    ASSERT_EQ(line.substr(0, line.find(':')), std::to_string(i));
    ASSERT_EQ(line_of(*child), "");
  }
  const auto end = child->read_line(ample_s);
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
}

TEST(Process, WaitGivesTheLinesNotRead) {
  const auto child = start(shell("echo one; echo two; echo three"));
  EXPECT_EQ(line_of(*child), "one");
  const ProcessEnd end = child->wait(ample_s);
  EXPECT_EQ(end.standard_output, "two\nthree\n");
  EXPECT_EQ(child->wait(ample_s).standard_output, end.standard_output) << "asking again changes nothing";
  EXPECT_EQ(child->kill().exit_code, 0);
}

TEST(Process, OutputIsBounded) {
  const ProcessEnd end =
      run(shell("echo first; head -c 20000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo last >&2"));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.standard_output.size(), 16u << 20);
  EXPECT_TRUE(end.standard_output.starts_with("first\n"));
  EXPECT_EQ(end.standard_error.size(), 1u << 20);
  EXPECT_TRUE(end.standard_error.ends_with("last\n"));
  const auto child = start(shell("head -c 20000000 /dev/zero; sleep 1000"));
  const auto line = child->read_line(ample_s);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code(), Code::exhausted);
}

TEST(Process, LimitsHold) {
  ProcessRequest request = shell("ulimit -v; ulimit -t");
  request.address_space_bytes = 512u << 20;
  request.cpu_seconds = 7;
  EXPECT_EQ(run(request).standard_output, "524288\n7\n");
  ProcessRequest greedy{.argv = {"dd", "if=/dev/zero", "of=/dev/null", "bs=900M", "count=1"}};
  greedy.address_space_bytes = 256u << 20;
  EXPECT_NE(run(greedy).exit_code, 0);
  ProcessRequest busy = shell("while :; do :; done");
  busy.cpu_seconds = 1;
  const ProcessEnd end = run(busy);
  EXPECT_TRUE(end.signal == SIGXCPU || end.signal == SIGKILL) << end.text();
  EXPECT_FALSE(end.timed_out);
  EXPECT_GT(end.user_s + end.system_s, 0.3);
  ProcessRequest waiting = shell("sh -c 'while :; do :; done'; exit 0");
  waiting.cpu_seconds = 1;
  const ProcessEnd waited = run(waiting);
  EXPECT_EQ(waited.exit_code, 0);
  EXPECT_GT(waited.user_s + waited.system_s, 0.3) << "its child's time is its own";
}

TEST(Process, ItJoinsItsControlGroupBeforeItsProgramBegins) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  ProcessRequest request = shell("cat cgroup.procs");
  request.folder = folder.path();
  request.control_group = folder.path();
  const auto none = system_processes().run(request, ample_s);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::unavailable);
  EXPECT_THAT(none.error().text(), HasSubstr("joining the control group"));
  ASSERT_TRUE(system_files().write_atomic(folder.path() / "cgroup.procs", ""));
  EXPECT_EQ(run(request).standard_output, "0") << "which is whoever writes it";
}

TEST(Process, PeakMemoryIsTheChilds) {
  const std::uint64_t size_mib = (peak_resident_bytes() >> 20) + 100;
  const ProcessEnd large =
      run({.argv = {"dd", "if=/dev/zero", "of=/dev/null", fmt::format("bs={}M", size_mib), "count=1"}});
  EXPECT_EQ(large.exit_code, 0);
  EXPECT_GT(large.peak_bytes, size_mib << 20);
  EXPECT_LT(large.peak_bytes, (size_mib + 40) << 20);
  // This process is made much larger than a child, whose peak must not become ours.
  const std::vector<char> block(64u << 20, 'x');
  const auto small = start(shell("read -r line"));
  ASSERT_TRUE(small->write("x\n"));
  const ProcessEnd end = small->wait(ample_s);
  EXPECT_GT(end.peak_bytes, 0u);
  EXPECT_LT(end.peak_bytes, 32u << 20);
  EXPECT_EQ(block.back(), 'x');
}

TEST(Process, ItLeadsAGroupWithDefaultSignalsAndNoForeignDescriptors) {
  signal(SIGPIPE, SIG_IGN);
  const int leaked = dup(1);  // without O_CLOEXEC, as a careless library opens files
  const auto child =
      // At last the shell becomes what reads its state: a shell that waits blocks signals at times.
      start(shell("echo $$; cut -d' ' -f5 /proc/$$/stat; ls /proc/$$/fd | tr '\\n' ' '; echo; "
                  "exec grep -E 'Sig(Ign|Blk)' /proc/self/status"));
  signal(SIGPIPE, SIG_DFL);
  close(leaked);
  EXPECT_EQ(number(line_of(*child)), child->pid());
  EXPECT_EQ(number(line_of(*child)), child->pid());
  const std::string descriptors = line_of(*child);
  EXPECT_THAT(descriptors, testing::StartsWith("0 1 2"));
  EXPECT_THAT(" " + descriptors + " ", testing::Not(HasSubstr(fmt::format(" {} ", leaked))));
  EXPECT_THAT(line_of(*child), testing::EndsWith("0000000000000000"));
  EXPECT_THAT(line_of(*child), testing::EndsWith("0000000000000000"));
}

TEST(Process, AChildOfAnEndedThreadLivesOn) {
  std::unique_ptr<Child> child;
  std::thread([&] { child = start(shell("read -r line; echo $line")); }).join();
  ASSERT_TRUE(child->write("alive\n"));
  EXPECT_EQ(line_of(*child), "alive");
}

// The parent is a second process of this program, running this same test, which is killed: its child
// must not stay behind.
TEST(Process, ItDiesWithItsParent) {
  if (const char* folder = std::getenv("FURLONG_TEST_PARENT_IN")) {
    ProcessRequest request = shell("echo $$ > pid.new; mv pid.new pid; exec sleep 1000");
    request.folder = folder;
    run(request, 1000);
    return;
  }
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  const auto parent =
      start({.argv = {own_executable()->string(), "--gtest_filter=Process.ItDiesWithItsParent"},
             .environment = {{"FURLONG_TEST_PARENT_IN", folder.path().string()}}});
  while (!fs::exists(folder.path() / "pid")) system_clock().sleep_ns(1'000'000);
  const int child = number(*system_files().read(folder.path() / "pid"));
  EXPECT_TRUE(alive(child));
  EXPECT_EQ(parent->kill().signal, SIGKILL);
  EXPECT_TRUE(gone_soon(child));
}

TEST(Process, WithAGuardItsChildrenDieWithItsParentToo) {
  if (const char* folder = std::getenv("FURLONG_TEST_PARENT_IN")) {
    ProcessRequest request = shell("sleep 1000 & echo $!; wait");
    request.guarded = true;
    const auto child = start(request);
    ASSERT_TRUE(system_files().write_atomic(fs::path(folder) / "pid", line_of(*child)));
    child->wait(1000);
    return;
  }
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("process"));
  const auto parent = start({.argv = {own_executable()->string(),
                                      "--gtest_filter=Process.WithAGuardItsChildrenDieWithItsParentToo"},
                             .environment = {{"FURLONG_TEST_PARENT_IN", folder.path().string()}}});
  while (!fs::exists(folder.path() / "pid")) system_clock().sleep_ns(1'000'000);
  const int grandchild = number(*system_files().read(folder.path() / "pid"));
  EXPECT_TRUE(alive(grandchild));
  EXPECT_EQ(parent->kill().signal, SIGKILL);
  EXPECT_TRUE(gone_soon(grandchild));
}

TEST(Process, AGuardIsInNobodysWay) {
  // It is no child of the child, ends with it, and is waited for.
  ProcessRequest request = shell("trap 'echo told' TERM; kill 0; wait; echo x; sleep 1000 & echo $!; exit 3");
  request.guarded = true;
  const ProcessEnd end = run(request);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(end.standard_output, testing::StartsWith("told\nx\n"));
  EXPECT_TRUE(gone_soon(number(end.standard_output.substr(sizeof "told\nx"))));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(Process, AProgramThatIgnoresItsChildrenStillSeesThemEnd) {
  signal(SIGCHLD, SIG_IGN);
  const ProcessEnd end = run(shell("echo x; exit 3"));
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(end.standard_output, "x\n");
  EXPECT_EQ(end.exit_code, -1) << "the system has thrown the exit status away";
}

TEST(Process, ManyThreadsStartAtOnce) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = fmt::format("{} {}", t, i);
        EXPECT_EQ(run({.argv = {"echo", text}}).standard_output, text + "\n");
      }
    });
}

TEST(OwnExecutable, IsThisTest) {
  const auto path = own_executable();
  ASSERT_TRUE(path);
  EXPECT_THAT(path->filename().string(), HasSubstr("test"));
}

}  // namespace
}  // namespace furlong
