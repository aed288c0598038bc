#include "furlong/base/os/guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/interrupt.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;

constexpr double kLong_s = 600;

GuardEnd guarded(const std::function<int(Hand&)>& work) {
  auto end = run_guarded(work);
  EXPECT_TRUE(end) << end.error().text();
  return end ? *end : GuardEnd{};
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

TEST(Guard, TellsWhatTheWorkReturned) {
  const GuardEnd end = guarded([](Hand& hand) {
    hand.take(1, "first", kLong_s);
    hand.drop();
    hand.reach(7);
    return 5;
  });
  EXPECT_TRUE(end.finished);
  EXPECT_EQ(end.code, 5);
  EXPECT_EQ(end.kind, 0U);
  EXPECT_EQ(end.milestone, 7U);
  EXPECT_FALSE(end.by_itself());
}

TEST(Guard, NamesWhatWasInHandWhenTheWorkEndedItself) {
  const std::pair<std::function<void()>, std::string> ways[] = {
      {[] { std::abort(); }, "killed by signal 6 (Aborted)"},
      {[] { ::raise(SIGSEGV); }, "killed by signal 11 (Segmentation fault)"},
      {[] { ::raise(SIGFPE); }, "killed by signal 8 (Floating point exception)"},
      {[] { _exit(0); }, "exit status 0"},
      {[] { _exit(3); }, "exit status 3"},
  };
  for (const auto& [way, words] : ways) {
    const GuardEnd end = guarded([&](Hand& hand) {
      // Sanitizers would catch it and end with a status of their own.
      for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) ::signal(signal, SIG_DFL);
      hand.reach(2);
      hand.take(1, "earlier", kLong_s);
      hand.take(3, "the culprit", kLong_s);
      way();
      return 0;
    });
    EXPECT_FALSE(end.finished) << words;
    EXPECT_TRUE(end.by_itself()) << words;
    EXPECT_EQ(end.text(), words);
    EXPECT_EQ(end.kind, 3U) << words;
    EXPECT_EQ(end.name, "the culprit") << words;
    EXPECT_EQ(end.milestone, 2U) << words;
  }
}

TEST(Guard, KillsWhatHoldsOneThingTooLong) {
  const GuardEnd end = guarded([](Hand& hand) -> int {
    hand.take(1, "quick", kLong_s);
    hand.take(2, "slow", 0.3);
    sleep_for_ever();
  });
  EXPECT_TRUE(end.hung);
  EXPECT_TRUE(end.by_itself());
  EXPECT_EQ(end.name, "slow");
  EXPECT_EQ(end.text(), "ran past 0.3 s");
}

TEST(Guard, TakesNothingForHungThatIsDroppedOrTakenAnew) {
  const GuardEnd end = guarded([](Hand& hand) {
    for (int i = 0; i < 60; ++i) {
      hand.take(1, "again", 30);
      system_clock().sleep_ns(5'000'000);
    }
    hand.take(1, "dropped", 0.001);
    hand.drop();
    system_clock().sleep_ns(300'000'000);
    return 0;
  });
  EXPECT_TRUE(end.finished) << end.text();
}

TEST(Guard, CutsLongNames) {
  const std::string name(5000, 'n');
  const GuardEnd end = guarded([&](Hand& hand) -> int {
    hand.take(1, name, kLong_s);
    _exit(0);
  });
  EXPECT_EQ(end.name, name.substr(0, 4095));
}

TEST(Guard, AKillFromOutsideBlamesNobody) {
  const GuardEnd end = guarded([](Hand& hand) -> int {
    hand.take(1, "innocent", kLong_s);
    ::kill(getpid(), SIGKILL);
    sleep_for_ever();
  });
  EXPECT_FALSE(end.by_itself());
  EXPECT_EQ(end.end.signal, SIGKILL);
}

TEST(Guard, RemovesTheTemporaryFoldersOfWorkThatDied) {
  const TemporaryFolder reports = std::move(*TemporaryFolder::make("guard"));
  const GuardEnd end = guarded([&](Hand&) -> int {
    auto folder = TemporaryFolder::make("left");
    std::ofstream(folder->path() / "f") << "x";
    std::ofstream(reports.path() / "where") << folder->path().string() << "\n" << std::getenv("TMPDIR");
    _exit(0);
  });
  EXPECT_FALSE(end.finished);
  std::ifstream where(reports.path() / "where");
  std::string left, own;
  ASSERT_TRUE(std::getline(where, left) && std::getline(where, own));
  EXPECT_TRUE(left.starts_with(own + "/")) << left;
  EXPECT_FALSE(fs::exists(own));
  EXPECT_TRUE(fs::path(own).filename().string().starts_with("furlong-"))
      << "a guard that is killed leaves it, and only such folders are swept later";
  const char* mine = std::getenv("TMPDIR");
  EXPECT_NE(mine == nullptr ? "" : std::string(mine), own);
}

/// A guard in a process of its own, whose work says "ready" once it runs; the end goes to "end".
class GuardedApplication : public testing::Test {
 protected:
  void start(const std::function<int(Hand&)>& work) {
    guard_ = fork();
    ASSERT_GE(guard_, 0);
    if (guard_ != 0) return;
    const auto end = run_guarded([&](Hand& hand) {
      std::ofstream(reports_.path() / "work") << getpid();
      return work(hand);
    });
    if (end)
      std::ofstream(reports_.path() / "end")
          << end->interrupted << " " << end->finished << " " << end->code << " " << end->by_itself();
    _exit(0);
  }
  void ready() const { std::ofstream(reports_.path() / "ready") << "x"; }
  void wait_until_ready() const {
    while (!fs::exists(reports_.path() / "ready")) system_clock().sleep_ns(1'000'000);
  }
  std::string wait_for_end() const {
    int status = 0;
    waitpid(guard_, &status, 0);
    return read("end");
  }
  std::string read(const std::string& name) const {
    return system_files().read(reports_.path() / name, 1000).value_or("");
  }

  TemporaryFolder reports_ = std::move(*TemporaryFolder::make("guard"));
  pid_t guard_ = -1;
};

TEST_F(GuardedApplication, PassesSignalsOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    fs::remove(reports_.path() / "ready");
    start([&](Hand&) {
      const std::stop_token stop = stop_on_interrupt();
      ready();
      while (!stop.stop_requested()) system_clock().sleep_ns(1'000'000);
      return 100 + interrupt_signal();
    });
    wait_until_ready();
    ::kill(guard_, signal);
    EXPECT_EQ(wait_for_end(), fmt::format("{0} 1 {1} 0", signal, 100 + signal));
  }
}

TEST_F(GuardedApplication, EndsWorkThatHangsOnceASignalCame) {
  start([&](Hand& hand) -> int {
    static_cast<void>(stop_on_interrupt());
    hand.take(1, "deaf", kLong_s);
    ready();
    sleep_for_ever();
  });
  wait_until_ready();
  ::kill(guard_, SIGTERM);
  EXPECT_EQ(wait_for_end(), fmt::format("{} 0 0 0", SIGTERM));
}

TEST_F(GuardedApplication, TheWorkDiesWithItsGuard) {
  start([&](Hand&) -> int {
    ready();
    sleep_for_ever();
  });
  wait_until_ready();
  const int work = std::atoi(read("work").c_str());
  ASSERT_GT(work, 0);
  ::kill(guard_, SIGKILL);
  EXPECT_EQ(wait_for_end(), "");
  // The work is gone, or waits for the system's first process to take note of it.
  for (;;) {
    std::ifstream stat("/proc/" + std::to_string(work) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t state = text.rfind(") ");
    if (state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X') break;
    system_clock().sleep_ns(10'000'000);
  }
}

}  // namespace
}  // namespace furlong
