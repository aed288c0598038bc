#include "furlong/base/os/clock.h"

#include <gtest/gtest.h>

namespace furlong {
namespace {

TEST(SystemClock, GoesForward) {
  Clock& clock = system_clock();
  const std::int64_t before = clock.now_ns();
  clock.sleep_ns(2'000'000);
  clock.sleep_ns(-5);
  EXPECT_GE(clock.now_ns() - before, 2'000'000);
  EXPECT_GT(clock.wall_us(), 1'700'000'000'000'000) << "later than 2023";
}

TEST(FakeClock, MovesOnlyWhenTold) {
  FakeClock clock;
  EXPECT_EQ(clock.now_ns(), 0);
  clock.advance_ns(1'500'000);
  clock.sleep_ns(500'000);
  clock.sleep_ns(-1);
  EXPECT_EQ(clock.now_ns(), 2'000'000);
  EXPECT_EQ(clock.wall_us(), 2'000);
  EXPECT_EQ(clock.now_ms(), 2.0);
}

TEST(IsoTime, KnownDates) {
  EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(iso_time(1'709'210'096'999'999), "2024-02-29T12:34:56Z");
  EXPECT_EQ(iso_time(-1), "1969-12-31T23:59:59Z");
}

}  // namespace
}  // namespace furlong
