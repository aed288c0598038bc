#include "furlong/fleet/agent/problems.h"

#include <gmock/gmock.h>

#include "furlong/base/os/clock.h"

namespace furlong::fleet {
namespace {

TEST(Problems, LoggedWhenNewAndOnceAMinuteAndGoneWhenOver) {
  FakeClock clock;
  Problems problems(clock);
  EXPECT_TRUE(problems.stands("disk", "full"));
  EXPECT_FALSE(problems.stands("disk", "still full"));
  EXPECT_TRUE(problems.stands("hub", "down"));
  EXPECT_THAT(problems.texts(), testing::ElementsAre("disk: still full", "hub: down"));
  clock.advance_ns(61'000'000'000);
  EXPECT_TRUE(problems.stands("disk", "full"));
  problems.over("disk");
  EXPECT_THAT(problems.texts(), testing::ElementsAre("hub: down"));
  EXPECT_TRUE(problems.stands("disk", "full"));
  for (int i = 0; i < 100; ++i) problems.stands(std::to_string(i), "x");
  EXPECT_EQ(problems.texts().size(), 20u);
}

}  // namespace
}  // namespace furlong::fleet
