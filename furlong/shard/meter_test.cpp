#include "furlong/shard/meter.h"

#include <gtest/gtest.h>

namespace furlong::shard {
namespace {

const Key kA = blake2b_256("a"), kB = blake2b_256("b");

TEST(Meter, OvershootsItsCapByAtMostOneCharge) {
  Meter meter(100);
  meter.begin_unit();
  EXPECT_TRUE(meter.charge(100)) << "the cap itself is allowed";
  const Status trip = meter.charge(7);
  ASSERT_FALSE(trip);
  EXPECT_EQ(trip.error().code(), Code::exhausted);
  EXPECT_NE(trip.error().text().find("the record's cap of 100 B"), std::string::npos) << trip.error().text();
  EXPECT_TRUE(meter.tripped());
  EXPECT_EQ(meter.bytes(), 107u);
  EXPECT_FALSE(meter.charge(50)) << "an executor that does not stop";
  EXPECT_EQ(meter.bytes(), 107u) << "adds no more";
}

TEST(Meter, ATripDoesNotLeakIntoWhatComesNext) {
  Meter meter(100);
  meter.begin_unit();
  ASSERT_TRUE(meter.charge(60));
  meter.commit();
  meter.begin_unit();
  ASSERT_FALSE(meter.charge(60));
  meter.rollback();
  EXPECT_FALSE(meter.tripped());
  EXPECT_EQ(meter.bytes(), 60u);
  meter.begin_unit();
  EXPECT_TRUE(meter.charge(40));
}

TEST(Meter, ARolledBackUnitLeavesNoMark) {
  Meter meter;
  meter.begin_unit();
  ASSERT_TRUE(meter.charge(10));
  meter.count("steps", 3);
  meter.touch(kA);
  meter.commit();
  meter.begin_unit();
  ASSERT_TRUE(meter.charge(90));
  meter.release(30);
  meter.count("steps", 4);
  meter.count("other", 1);
  meter.touch(kA);
  meter.touch(kB);
  EXPECT_EQ(meter.last_touched().size(), 2u);
  meter.rollback();
  EXPECT_EQ(meter.bytes(), 10u);
  EXPECT_EQ(meter.features(), (std::map<std::string, double>{{"steps", 3}}));
  EXPECT_EQ(meter.touched(), (std::set<Key>{kA})) << "what an earlier unit touched stays";
  EXPECT_TRUE(meter.last_touched().empty());
}

TEST(Meter, SaysWhatTheLastUnitTouchedAlsoWhenOthersHadBefore) {
  Meter meter;
  meter.begin_unit();
  meter.touch(kA);
  meter.commit();
  meter.begin_unit();
  meter.touch(kA);
  meter.commit();
  EXPECT_EQ(meter.last_touched(), std::vector<Key>{kA});
  EXPECT_EQ(meter.touched().size(), 1u);
}

TEST(Meter, WithoutACapNothingTrips) {
  Meter meter;
  meter.begin_unit();
  EXPECT_TRUE(meter.charge(std::uint64_t{1} << 50));
  meter.release(std::uint64_t{1} << 51);
  EXPECT_EQ(meter.bytes(), 0u) << "more than was charged cannot be given back";
}

}  // namespace
}  // namespace furlong::shard
