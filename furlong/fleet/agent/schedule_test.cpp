#include "furlong/fleet/agent/schedule.h"

#include <gmock/gmock.h>

#include "furlong/base/os/clock.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t second_us = 1'000'000;

/// Wall time that can be set against steady time.
class SetClock : public FakeClock {
 public:
  std::int64_t wall_us() override { return FakeClock::wall_us() + offset_us; }
  std::int64_t offset_us = 0;
};

ScheduleConfig hourly() { return {.epoch_s = 3600, .first_day = 0, .lead = 600, .seed = "s"}; }

TEST(ClockSchedule, TurnsByTheHour) {
  ClockSchedule schedule(hourly());
  const Due early = schedule.due(7200 * second_us);
  ASSERT_TRUE(early.current);
  EXPECT_EQ(*early.current, schedule.turn(2));
  EXPECT_FALSE(early.next);
  EXPECT_DOUBLE_EQ(*early.next_in_s, 3600);
  EXPECT_FALSE(schedule.due((10'800 - 601) * second_us).next);
  EXPECT_EQ(schedule.due((10'800 - 600) * second_us).next, schedule.turn(3));
  EXPECT_EQ(schedule.due(10'800 * second_us).current, schedule.turn(3));
  EXPECT_EQ(schedule.due(10'800 * second_us - 1).current, schedule.turn(2));
  EXPECT_EQ(schedule.turn(24).day, 1);
  EXPECT_EQ(schedule.turn(23).day, 0);
}

TEST(ClockSchedule, SeedsAreTheSameEverywhereAndDifferEachTime) {
  ClockSchedule schedule(hourly());
  ScheduleConfig other = hourly();
  other.seed = "t";
  EXPECT_EQ(schedule.turn(5).seed, ClockSchedule(hourly()).turn(5).seed);
  EXPECT_EQ(schedule.turn(5).seed.size(), 64u);
  EXPECT_NE(schedule.turn(5).seed, schedule.turn(6).seed);
  EXPECT_NE(schedule.turn(5).seed, ClockSchedule(other).turn(5).seed);
  EXPECT_TRUE(schedule.due(-5 * second_us).current) << "a clock that was never set";
}

TEST(JumpWatch, TellsAnHourEitherWayButNoDrift) {
  SetClock clock;
  JumpWatch watch(clock);
  clock.advance_ns(1'000'000'000);
  EXPECT_EQ(watch.look(), 0);
  clock.offset_us += 3600 * second_us;
  EXPECT_DOUBLE_EQ(watch.look(), 3600);
  EXPECT_EQ(watch.look(), 0) << "told once";
  clock.offset_us -= 7200 * second_us;
  EXPECT_DOUBLE_EQ(watch.look(), -7200);
  for (int i = 0; i < 100; ++i) {
    clock.offset_us += second_us / 10;
    EXPECT_EQ(watch.look(), 0);
  }
}

ChainLine line(char digit, std::int64_t height, std::int64_t boundary) {
  return {
      .turn = {.seed = std::string(64, digit), .day = 1, .pack = {}}, .height = height, .boundary = boundary};
}

TEST(ChainSchedule, AnnouncedThenDue) {
  ChainSchedule schedule(5);
  EXPECT_EQ(schedule.due(0), Due{});
  schedule.take(line('1', 100, 90));
  schedule.take(line('2', 101, 110));
  EXPECT_EQ(schedule.due(0).current, line('1', 0, 0).turn);
  EXPECT_FALSE(schedule.due(0).next) << "more than the lead away";
  schedule.take(line('2', 105, 110));
  EXPECT_EQ(schedule.due(0).next, line('2', 0, 0).turn);
  schedule.take(line('4', 106, 110));  // the chain thought better of it
  EXPECT_EQ(schedule.due(0).next, line('4', 0, 0).turn);
  schedule.take(line('5', 110, 120));  // which also says that 110 is reached
  EXPECT_EQ(schedule.due(0).current, line('4', 0, 0).turn);
  EXPECT_FALSE(schedule.due(0).next);
}

TEST(ChainLine, WhatIsWrongIsNamed) {
  const std::string seed(64, 'A');
  const auto good =
      parse_chain_line(R"({"epoch_seed":")" + seed + R"(","day":2,"height":1,"boundary":2,"new":0})");
  ASSERT_TRUE(good) << good.error().text();
  EXPECT_EQ(good->turn.seed, std::string(64, 'a'));
  for (const char* bad : {"", "[]", "{}", R"({"epoch_seed":"12","day":2,"height":1,"boundary":2})",
                          R"({"epoch_seed":1,"day":2,"height":1,"boundary":2})"})
    EXPECT_FALSE(parse_chain_line(bad)) << bad;
  EXPECT_FALSE(parse_chain_line(R"({"epoch_seed":")" + seed + R"(","day":-1,"height":1,"boundary":2})"));
}

}  // namespace
}  // namespace furlong::fleet
