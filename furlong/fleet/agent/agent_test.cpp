// The whole agent with all its threads, over a worker in this process and a wall clock that can be set.
#include "furlong/fleet/agent/agent.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/internal/testing.h"
#include "furlong/fleet/agent/schedule.h"

namespace furlong::fleet {
namespace {

using testing::HasSubstr;

constexpr std::int64_t hour_us = 3'600'000'000;

/// Steady time is real, and may be let pass; wall time is set.
class SetClock : public Clock {
 public:
  std::int64_t now_ns() override { return system_clock().now_ns() + passed_ns; }
  std::int64_t wall_us() override { return now_ns() / 1000 + offset_us; }
  void sleep_ns(std::int64_t duration_ns) override { system_clock().sleep_ns(duration_ns / 20); }
  void set(std::int64_t wall) { offset_us = wall - now_ns() / 1000; }
  std::atomic<std::int64_t> offset_us{0};
  std::atomic<std::int64_t> passed_ns{0};
};

/// A worker that does at once what it is told.
class ObedientWorker : public Child {
 public:
  explicit ObedientWorker(std::function<void(const std::string&)> heard) : heard_(std::move(heard)) {
    says_.push_back("ready 1 cuda:0 NVIDIA_H200 driver 580 arch sm_90");
  }
  Result<std::optional<std::string>> read_line(double) override {
    const std::scoped_lock lock(mutex_);
    if (!says_.empty()) {
      std::string line = says_.front();
      says_.pop_front();
      return std::optional(std::move(line));
    }
    if (ended_) return std::optional<std::string>();
    system_clock().sleep_ns(1'000'000);
    return fail(Code::timeout, "nothing");
  }
  Status write(std::string_view bytes) override {
    const std::scoped_lock lock(mutex_);
    const auto command = record::parse_worker_command(bytes.substr(0, bytes.size() - 1));
    EXPECT_TRUE(command) << bytes;
    heard_(std::string(bytes));
    if (const auto* job = std::get_if<record::JobCommand>(&*command)) {
      says_.push_back(record::print(
          record::SwapEvent{.epoch = job->pair.epoch, .day = job->pair.day, .variant = "base"}));
      says_.push_back(record::print(record::FoundEvent{.job = job->job, .nonce = 7, .hash = 1}));
      says_.push_back(record::print(
          record::RateEvent{.pair = job->pair, .variant = "base", .mhs = 5, .job = job->job, .next = 9}));
    }
    if (const auto* prepare = std::get_if<record::PrepareCommand>(&*command))
      says_.push_back(
          record::print(record::PreparedEvent{.pair = prepare->pair, .variant = "base", .ms = 1}));
    if (std::holds_alternative<record::QuitCommand>(*command)) {
      says_.emplace_back("bye");
      ended_ = true;
    }
    return {};
  }
  void close_input() override {}
  ProcessEnd kill() override { return {}; }
  ProcessEnd wait(double) override { return {.exit_code = 0}; }
  int pid() const override { return 42; }

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> heard_;
  std::deque<std::string> says_;
  bool ended_ = false;
};

using testing_support::EndedChild;

class Children : public Processes {
 public:
  Result<std::unique_ptr<Child>> start(const ProcessRequest& request) override {
    if (request.argv.at(1) == "devices")
      return std::make_unique<EndedChild>(ProcessEnd{
          .exit_code = 0,
          .standard_output = R"({"devices":[{"address":"cuda:0","label":"H200","uuid":"GPU-1"}]})"});
    if (request.argv.at(1) != "worker") return std::make_unique<EndedChild>(ProcessEnd{.exit_code = 0});
    return std::make_unique<ObedientWorker>([this](const std::string& line) {
      const std::scoped_lock lock(mutex);
      heard += line;
    });
  }
  bool has_heard(const std::string& text) {
    const std::scoped_lock lock(mutex);
    return heard.find(text) != std::string::npos;
  }
  std::mutex mutex;
  std::string heard;
};

TEST(Agent, AClockThatJumpsAnHourEitherWayOnlyChoosesAnotherTurn) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("agent"));
  SetClock clock;
  Children children;
  AgentConfig config{.data = folder.path(), .furlong = "furlong", .all_devices = true};
  config.schedule.seed = "s";
  ClockSchedule schedule(config.schedule);
  std::mutex mutex;
  std::string said;
  AgentSurroundings with{.version = "1", .files = &system_files(), .processes = &children, .clock = &clock};
  with.say = [&](LogLevel, std::string_view text) {
    const std::scoped_lock lock(mutex);
    said += std::string(text) + "\n";
  };
  clock.set(500'000 * hour_us + 60'000'000);
  std::optional<FileLock> looked = std::move(*FileLock::acquire(agent_lock_file(folder.path())));
  std::jthread looker([&] {
    system_clock().sleep_ns(100'000'000);
    looked.reset();
  });
  auto agent = Agent::open(config, with, {});
  ASSERT_TRUE(agent) << "somebody who only looked held the lock for a moment: " << agent.error().text();
  EXPECT_TRUE(*agent_runs(folder.path()));
  EXPECT_EQ(Agent::open(config, with, {}).error().code(), Code::denied);

  std::stop_source stop;
  std::thread work([&] { EXPECT_TRUE((*agent)->run(stop.get_token())); });
  const auto until = [&](const std::function<bool()>& what, const std::string& why) {
    for (int i = 0; i < 6000 && !what(); ++i) system_clock().sleep_ns(10'000'000);
    EXPECT_TRUE(what()) << why << "\n" << children.heard << said;
  };
  const auto job_of = [&](std::int64_t index) { return "job " + schedule.turn(index).pair().text(); };
  const auto served = [&](std::int64_t index) {
    return [&, index] { return children.has_heard(job_of(index)); };
  };
  until(served(500'000), "the turn of the clock");
  clock.offset_us += hour_us;
  until(served(500'001), "an hour on");
  clock.offset_us -= 2 * hour_us;
  until(served(499'999), "two hours back");
  clock.offset_us += 3'000'000'000;  // within the lead of the next boundary
  until([&] { return children.has_heard("prepare " + schedule.turn(500'000).pair().text()); },
        "the next is prepared");
  until([&] { return (*agent)->status().clock_jumps == 3; }, "each was noted");
  EXPECT_EQ((*agent)->status().spool.finds, 3) << "one of each turn";
  EXPECT_EQ((*agent)->status().devices.at(0).state, "serving");
  stop.request_stop();
  work.join();
  EXPECT_TRUE(children.has_heard("quit"));
  EXPECT_THAT(said, HasSubstr("the wall clock jumped by -7200 s"));
  const auto left = parse_agent_status(*system_files().read(agent_status_file(folder.path())), "status.json");
  ASSERT_TRUE(left);
  EXPECT_EQ(left->pid, 0);
  EXPECT_EQ(left->devices.at(0).state, "stopped");
  agent->reset();
  EXPECT_FALSE(*agent_runs(folder.path()));
}

TEST(Agent, ASilentScheduleCommandIsAProblem) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("agent"));
  SetClock clock;
  Children children;
  AgentConfig config{.data = folder.path(), .furlong = "furlong", .all_devices = true};
  config.schedule.kind = ScheduleConfig::Kind::command;
  config.schedule.command = {"chain", "follow"};
  const AgentSurroundings with{
      .version = "1", .files = &system_files(), .processes = &children, .clock = &clock};
  auto agent = Agent::open(config, with, {});
  ASSERT_TRUE(agent) << agent.error().text();
  std::stop_source stop;
  std::thread work([&] { EXPECT_TRUE((*agent)->run(stop.get_token())); });
  const auto told = [&] {
    for (const std::string& each : (*agent)->status().problems)
      if (each.starts_with("no program is due: ")) return true;
    return false;
  };
  EXPECT_FALSE(told()) << "it may be waking up";
  clock.passed_ns += 31'000'000'000;
  for (int i = 0; i < 6000 && !told(); ++i) system_clock().sleep_ns(10'000'000);
  EXPECT_TRUE(told());
  stop.request_stop();
  work.join();
}

}  // namespace
}  // namespace furlong::fleet
