#include "furlong/fleet/hub/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "furlong/fleet/hub/internal/testing.h"

namespace furlong::fleet {
namespace {

using hub_testing::Sender;
using hub_testing::TestHub;

IncomingBatch batch_of(Sender& sender, std::uint64_t number) {
  const std::string body = sender.body({json_line(sender.record(fmt::format("{:016x}", number)))});
  auto batch = judge_batch(body, sender.id(), hub_testing::start_us);
  return *std::move(batch);
}

class Writing : public ::testing::Test {
 protected:
  Writing() { fleet.know(box); }
  /// Holds the store's thread within add() until it is opened.
  struct Gate {
    std::mutex mutex;
    std::condition_variable moved;
    bool entered = false, open = false;
    void pass() {
      std::unique_lock lock(mutex);
      entered = true;
      moved.notify_all();
      moved.wait(lock, [&] { return open; });
    }
    void wait_entered() {
      std::unique_lock lock(mutex);
      moved.wait(lock, [&] { return entered; });
    }
    void release() {
      const std::scoped_lock lock(mutex);
      open = true;
      moved.notify_all();
    }
  };
  void hold_adds() {
    fleet.faults->set([this](std::string_view call) -> Status {
      if (call == "add") gate.pass();
      return {};
    });
  }

  TestHub fleet;
  Sender box{1};
  Gate gate;
};

TEST_F(Writing, ManyBatchesInOneTransaction) {
  hold_adds();
  Writer writer(fleet.surroundings().open_store, {});
  constexpr int count = 9;
  std::vector<std::thread> threads;
  std::atomic<int> accepted = 0;
  const auto send = [&](std::uint64_t number) {
    Sender sender(1);
    const auto written = writer.add(*writer.reserve(100), batch_of(sender, number));
    if (written && written->outcome.fates == std::vector{Fate::accepted}) ++accepted;
  };
  threads.emplace_back(send, 0);
  gate.wait_entered();
  for (std::uint64_t i = 1; i < count; ++i) threads.emplace_back(send, i);
  while (writer.counts().queued < count - 1) std::this_thread::yield();
  EXPECT_EQ(accepted, 0) << "nothing is told before the store has it";
  gate.release();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(writer.counts().commits, 2u);
  EXPECT_EQ(writer.counts().batches, 9u);
  EXPECT_GT(accepted, 0);
}

TEST_F(Writing, PlacesAreBounded) {
  Writer writer(fleet.surroundings().open_store, {.most_places = 3, .most_bytes = 1000});
  std::vector<Writer::Place> places;
  for (int i = 0; i < 3; ++i) {
    auto place = writer.reserve(10);
    ASSERT_TRUE(place);
    places.push_back(std::move(*place));
  }
  EXPECT_FALSE(writer.reserve(10)) << "too many";
  places.clear();
  EXPECT_EQ(writer.counts().place_bytes, 0u);
  auto large = writer.reserve(5000);
  EXPECT_TRUE(large) << "alone, also what is larger than all";
  EXPECT_FALSE(writer.reserve(1)) << "too large together";
  large.reset();
  EXPECT_TRUE(writer.reserve(1000));
}

TEST_F(Writing, OneBadBatchDoesNotSpoilItsTransaction) {
  hold_adds();
  Writer writer(fleet.surroundings().open_store, {});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0, bad = 0;
  const auto send = [&](std::uint64_t seed, std::uint64_t number) {
    Sender sender(seed);
    const auto written = writer.add(*writer.reserve(100), batch_of(sender, number));
    ++(written ? good : bad);
  };
  threads.emplace_back(send, 1, 0);
  gate.wait_entered();
  threads.emplace_back(send, 1, 1);
  threads.emplace_back(send, 2, 2);  // a machine that the store does not know
  while (writer.counts().queued < 2) std::this_thread::yield();
  gate.release();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(bad, 1);
}

TEST_F(Writing, StopWritesWhatWasQueued) {
  hold_adds();
  auto writer = std::make_unique<Writer>(fleet.surroundings().open_store, Writer::Options{});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  const auto send = [&](std::uint64_t number) {
    Sender sender(1);
    good += writer->add(*writer->reserve(100), batch_of(sender, number)).has_value();
  };
  threads.emplace_back(send, 0);
  gate.wait_entered();
  for (std::uint64_t i = 1; i < 5; ++i) threads.emplace_back(send, i);
  while (writer->counts().queued < 4) std::this_thread::yield();
  gate.release();
  writer->stop();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 5);
  Sender sender(1);
  const auto late = writer->add(*writer->reserve(1), batch_of(sender, 99));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::unavailable);
}

TEST_F(Writing, AStoreThatHangsIsNotWaitedForForEver) {
  hold_adds();
  Writer writer(fleet.surroundings().open_store, {.wait_s = 0.05});
  const auto written = writer.add(*writer.reserve(1), batch_of(box, 1));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), Code::timeout);
  EXPECT_EQ(writer.counts().places, 1u) << "its memory is still in use";
  gate.release();
  writer.stop();
  EXPECT_EQ(writer.counts().places, 0u);
  EXPECT_EQ(fleet.store()->totals()->races, 1u);
}

TEST_F(Writing, OtherWorkInItsTurn) {
  Writer writer(fleet.surroundings().open_store, {});
  int seen = 0;
  EXPECT_TRUE(writer.run([&](Store& store) -> Status {
    seen = static_cast<int>(store.machines()->size());
    return {};
  }));
  EXPECT_EQ(seen, 1);
  const Status failed = writer.run([](Store&) -> Status { return fail(Code::exhausted, "full"); });
  EXPECT_EQ(failed.error().code(), Code::exhausted);
  EXPECT_TRUE(writer.counts().failing);
}

TEST_F(Writing, WhatFailedIsToldApartAndEndsWithTheNextSuccess) {
  Writer writer(fleet.surroundings().open_store, {});
  const auto works = [](Store&) -> Status { return {}; };
  const auto fails = [](Store&) -> Status { return fail(Code::exhausted, "full"); };
  EXPECT_FALSE(writer.run(fails));
  EXPECT_TRUE(writer.counts().failing);
  EXPECT_FALSE(writer.counts().failing_batches) << "batches may work";
  EXPECT_TRUE(writer.run(works));
  EXPECT_FALSE(writer.counts().failing) << "on an idle hub there is no batch to say so";
  fleet.faults->set([](std::string_view call) -> Status {
    return call == "add" ? Status(fail(Code::exhausted, "full")) : Status();
  });
  EXPECT_FALSE(writer.add(*writer.reserve(1), batch_of(box, 1)));
  EXPECT_TRUE(writer.counts().failing);
  EXPECT_TRUE(writer.counts().failing_batches);
  EXPECT_TRUE(writer.run(works));
  EXPECT_FALSE(writer.counts().failing);
}

TEST_F(Writing, AStoreThatCannotBeOpenedIsTriedAgain) {
  fleet.faults->set([](std::string_view call) -> Status {
    return call == "open" ? Status(fail(Code::unavailable, "not yet")) : Status();
  });
  Writer writer(fleet.surroundings().open_store, {});
  EXPECT_EQ(writer.add(*writer.reserve(1), batch_of(box, 1)).error().message(), "not yet");
  fleet.faults->set({});
  EXPECT_TRUE(writer.add(*writer.reserve(1), batch_of(box, 1)));
  EXPECT_FALSE(writer.counts().failing);
}

}  // namespace
}  // namespace furlong::fleet
