#include "furlong/fleet/hub/limits.h"

#include <gtest/gtest.h>

#include <map>

#include "furlong/base/random.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

TEST(Limits, ABurstThenTheRate) {
  Buckets buckets({.per_minute = 60, .burst = 3, .most_names = 10});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buckets.take("a", 0), 0);
  EXPECT_DOUBLE_EQ(buckets.take("a", 0), 1);
  EXPECT_DOUBLE_EQ(buckets.wait_s("a", second_ns / 2), 0.5);
  EXPECT_EQ(buckets.take("a", second_ns), 0);
  EXPECT_GT(buckets.take("a", second_ns), 0);
  EXPECT_EQ(buckets.take("b", second_ns), 0) << "another name has a bucket of its own";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buckets.take("a", 3600 * second_ns), 0);
  EXPECT_GT(buckets.take("a", 3600 * second_ns), 0) << "an hour fills no more than the burst";
}

TEST(Limits, GivingBack) {
  Buckets buckets({.per_minute = 60, .burst = 1, .most_names = 10});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(buckets.take("a", 0), 0);
    buckets.give_back("a");
    buckets.give_back("a");
  }
  EXPECT_EQ(buckets.take("a", 0), 0);
  EXPECT_GT(buckets.take("a", 0), 0) << "no more comes back than the burst";
}

TEST(Limits, AClockThatGoesBackGivesNothing) {
  Buckets buckets({.per_minute = 60, .burst = 1, .most_names = 10});
  EXPECT_EQ(buckets.take("a", 100 * second_ns), 0);
  EXPECT_GT(buckets.take("a", 0), 0);
}

TEST(Limits, MemoryIsBounded) {
  Buckets buckets({.per_minute = 1, .burst = 1, .most_names = 100});
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(buckets.take("the one that is used all the time", 0) == 0, i == 0);
    EXPECT_EQ(buckets.take(std::to_string(i), 0), 0);
  }
  EXPECT_EQ(buckets.names(), 100u);
}

/// Never more than the burst and the rate allow, whoever asks when.
TEST(Limits, PropertyNoNameGetsMore) {
  Random random(7, "limits");
  const Buckets::Options options{.per_minute = 30, .burst = 5, .most_names = 50};
  Buckets buckets(options);
  std::map<std::string, int> taken;
  std::int64_t now_ns = 0;
  for (int i = 0; i < 20'000; ++i) {
    now_ns += static_cast<std::int64_t>(random.below(second_ns / 10));
    const std::string name = std::to_string(random.below(20));
    if (buckets.take(name, now_ns) == 0) ++taken[name];
  }
  for (const auto& [name, count] : taken)
    EXPECT_LE(count, options.burst + options.per_minute / 60 * static_cast<double>(now_ns) / second_ns)
        << name;
}

TEST(Limits, RecentNames) {
  RecentNames names(3);
  for (const char* name : {"a", "b", "c", "a", "d"}) names.put(name);
  EXPECT_TRUE(names.has("a")) << "it was used again";
  EXPECT_FALSE(names.has("b"));
  EXPECT_TRUE(names.has("d"));
  EXPECT_EQ(names.names(), 3u);
  names.forget("d");
  names.forget("none");
  EXPECT_FALSE(names.has("d"));
  EXPECT_EQ(names.names(), 2u);
}

TEST(Limits, NetworkOf) {
  EXPECT_EQ(network_of("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(network_of("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("2001:db8::9"), "2001:db8:0:0::/64");
  EXPECT_EQ(network_of("2001:db8::1:2:3:4:5"), "2001:db8:0:1::/64");
  EXPECT_EQ(network_of("fe80::1%eth0"), "fe80:0:0:0::/64");
  EXPECT_EQ(network_of("::1"), "0:0:0:0::/64");
  EXPECT_EQ(network_of(""), "");
  EXPECT_EQ(network_of(std::string(1000, 'x')).size(), 64u);
}

}  // namespace
}  // namespace furlong::fleet
