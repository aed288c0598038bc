#include "furlong/base/log.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace furlong {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Log : public testing::Test {
 protected:
  ~Log() override { set_log_sink({}); }
};

TEST_F(Log, IsSilentUntilASinkIsInstalled) {
  set_log_sink({});
  EXPECT_FALSE(log_enabled(LogLevel::error));
  log_warning("nobody hears this");
  std::vector<std::string> heard;
  set_log_sink([&](LogLevel, std::string_view text) { heard.emplace_back(text); }, LogLevel::warning);
  log_info("too quiet");
  log_warning("{} heats dropped", 3);
  log_error("bad");
  EXPECT_THAT(heard, ElementsAre("3 heats dropped", "bad"));
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST_F(Log, ReplacingReturnsThePreviousSink) {
  int first = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++first; });
  LogSink previous = set_log_sink([](LogLevel, std::string_view) {});
  log_info("to the second");
  EXPECT_EQ(first, 0);
  ASSERT_TRUE(previous);
  previous(LogLevel::info, "by hand");
  EXPECT_EQ(first, 1);
}

TEST_F(Log, ASinkMayThrowLogAndReplaceItself) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view text) {
    ++calls;
    if (text == "outer") log_info("inner");
    if (text == "last") set_log_sink({});
    throw std::runtime_error("dropped");
  });
  EXPECT_NO_THROW(log_info("outer"));
  EXPECT_EQ(calls, 2);
  log_info("last");
  log_info("unheard");
  EXPECT_EQ(calls, 3);
}

TEST_F(Log, ThreadsTakeTurns) {
  int calls = 0;  // not atomic: the sink is called by one thread at a time
  set_log_sink([&](LogLevel, std::string_view) { ++calls; });
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 250; ++i) log_info("{}", i);
    });
  threads.clear();
  EXPECT_EQ(calls, 1000);
}

TEST_F(Log, StderrShowsTimeAndLevel) {
  testing::internal::CaptureStderr();
  log_to_stderr(LogLevel::info);
  log_warning("braces {} stay", "{}");
  log_debug("hidden");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::ContainsRegex("^[0-9]+:[0-9]+:[0-9]+ "));
  EXPECT_THAT(text, HasSubstr("warning: braces {} stay\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace furlong
