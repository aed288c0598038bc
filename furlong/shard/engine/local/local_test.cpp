#include "furlong/shard/engine/local/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace furlong::shard::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<EngineTask> tasks_of(const std::vector<std::uint64_t>& memory) {
  std::vector<EngineTask> tasks;
  for (std::size_t i = 0; i < memory.size(); ++i)
    tasks.push_back({static_cast<ShardId>(i), fmt::format("shard {}", i), memory[i], 0});
  return tasks;
}

TEST(LocalEngine, RunsEveryTaskOnceInOrderWhenThereIsOneJob) {
  std::vector<ShardId> ran, ended;
  const auto engine = make_engine([&](const EngineTask& task, std::stop_token) {
    ran.push_back(task.shard);
    return TaskEnd{};
  });
  const auto tasks = tasks_of({5, 4, 3});
  ASSERT_TRUE(engine->run(tasks, {.memory_bytes = 5, .jobs = 1}, [&](const TaskEnd& end) {
    ended.push_back(end.shard);
    EXPECT_FALSE(end.error);
    return true;
  }));
  EXPECT_THAT(ran, ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(ended, ElementsAre(0u, 1u, 2u));
}

TEST(LocalEngine, AdmitsByTheSumOfMemoryAndByTheNumberOfJobs) {
  std::mutex mutex;
  std::uint64_t taken = 0, most = 0;
  unsigned at_work = 0, most_at_work = 0;
  const auto engine = make_engine([&](const EngineTask& task, std::stop_token) {
    {
      const std::scoped_lock lock(mutex);
      most = std::max(most, taken += task.memory_bytes);
      most_at_work = std::max(most_at_work, ++at_work);
    }
    std::this_thread::yield();
    const std::scoped_lock lock(mutex);
    taken -= task.memory_bytes;
    --at_work;
    return TaskEnd{};
  });
  std::vector<std::uint64_t> memory;
  for (std::uint64_t i = 0; i < 200; ++i) memory.push_back(1 + i * 7 % 6);
  int ended = 0;
  ASSERT_TRUE(engine->run(tasks_of(memory), {.memory_bytes = 10, .jobs = 4}, [&](const TaskEnd&) {
    ++ended;
    return true;
  }));
  EXPECT_EQ(ended, 200);
  EXPECT_LE(most, 10u);
  EXPECT_LE(most_at_work, 4u);
}

TEST(LocalEngine, WhatDoesNotFitNowLetsASmallerOneGoFirst) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ShardId> begun;
  const auto engine = make_engine([&](const EngineTask& task, std::stop_token) {
    std::unique_lock lock(mutex);
    begun.push_back(task.shard);
    changed.notify_all();
    // The first holds its memory until the small one has begun, which must not wait for the second.
    if (task.shard == 0)
      EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return begun.size() == 2; }));
    return TaskEnd{};
  });
  ASSERT_TRUE(
      engine->run(tasks_of({6, 6, 3}), {.memory_bytes = 10, .jobs = 2}, [](const TaskEnd&) { return true; }));
  EXPECT_THAT(begun, ElementsAre(0u, 2u, 1u));
}

TEST(LocalEngine, OneThatIsLargerThanAllMemoryIsNamedAndNotBegun) {
  std::atomic<int> ran{0};
  const auto engine = make_engine([&](const EngineTask&, std::stop_token) {
    ++ran;
    return TaskEnd{};
  });
  std::map<ShardId, std::string> errors;
  ASSERT_TRUE(engine->run(tasks_of({11, 10}), {.memory_bytes = 10, .jobs = 2}, [&](const TaskEnd& end) {
    if (end.error) errors[end.shard] = end.error->text();
    return true;
  }));
  EXPECT_EQ(ran, 1);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0], HasSubstr("shard 0 is predicted to take 11 B, and there are 10 B"));
}

TEST(LocalEngine, BeginsNothingMoreOnceItIsToldSo) {
  std::atomic<int> ran{0};
  const auto engine = make_engine([&](const EngineTask& task, std::stop_token) {
    ++ran;
    TaskEnd end;
    if (task.shard == 1) end.error = fail(Code::mismatch, "it failed");
    return end;
  });
  ASSERT_TRUE(
      engine->run(tasks_of({1, 1, 1, 1}), {.jobs = 1}, [](const TaskEnd& end) { return !end.error; }));
  EXPECT_EQ(ran, 2);
}

TEST(LocalEngine, AStopReachesTheJobsAndEndsTheRun) {
  std::stop_source source;
  std::atomic<int> ran{0};
  const auto engine = make_engine([&](const EngineTask&, std::stop_token stop) {
    if (++ran == 2) source.request_stop();
    while (!stop.stop_requested()) std::this_thread::yield();
    TaskEnd end;
    end.error = fail(Code::timeout, "stopped");
    return end;
  });
  const Status status = engine->run(tasks_of({1, 1, 1, 1, 1}), {.jobs = 2, .stop = source.get_token()},
                                    [](const TaskEnd&) { return true; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::timeout);
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace furlong::shard::local
