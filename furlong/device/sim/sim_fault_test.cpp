#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/device/sim/internal/test_rig.h"

namespace furlong::device {
namespace {

using internal::quiet;
using internal::Rig;
using ::testing::HasSubstr;

TEST(SimFaults, HangStrikesAfterItsLaunchesAndOthersGoOn) {
  SimOptions options = quiet();
  options.faults = {{"u2", SimFault::hang, 3}};
  options.hang_ms = 700;
  Rig rig(std::move(options));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(rig.run("u2"));
  const double before_ms = rig.clock->now_ms();
  const Status hung = rig.run("u2");
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code(), Code::timeout);
  EXPECT_THAT(hung.error().text(), HasSubstr("'u2'"));
  EXPECT_NEAR(rig.clock->now_ms() - before_ms, 700, 1e-6);
  EXPECT_TRUE(rig.run("base"));
  EXPECT_EQ(rig.time("u2", 1).error().code(), Code::timeout);
  EXPECT_TRUE(rig.time("base", 1));
}

TEST(SimFaults, ATimedWindowReachesTheFaultInItsMiddle) {
  SimOptions options = quiet();
  options.faults = {{"u2", SimFault::hang, 10}};
  Rig rig(std::move(options));
  EXPECT_TRUE(rig.time("u2", 5, 2));
  EXPECT_EQ(rig.time("u2", 1).error().code(), Code::timeout);
}

TEST(SimFaults, TrapLosesTheDeviceAndReopeningMendsIt) {
  SimOptions options = quiet();
  options.faults = {{"u2", SimFault::trap, 1}};
  Rig rig(std::move(options));
  ASSERT_TRUE(rig.run("u2"));
  ASSERT_TRUE(rig.device->launch(rig.launch_of("u2")));
  EXPECT_EQ(rig.device->finish().error().code(), Code::internal);
  EXPECT_EQ(rig.device->finish().error().code(), Code::unavailable);
  EXPECT_EQ(rig.device->launch(rig.launch_of("u2")).error().code(), Code::unavailable);
  EXPECT_EQ(rig.device->allocate(1).error().code(), Code::unavailable);
  EXPECT_EQ(rig.device->compile({}).error().code(), Code::unavailable);
  EXPECT_EQ(rig.out->fill(0, 0, 1).error().code(), Code::unavailable);
  EXPECT_FALSE(rig.device->telemetry().clock_mhz.has_value());
  rig.reopen();
  EXPECT_TRUE(rig.run("u2"));
}

TEST(SimFaults, DeviceLostAndOutOfMemory) {
  SimOptions options = quiet();
  options.faults = {{"gone", SimFault::device_lost}, {"big", SimFault::out_of_memory, 0, 2}};
  Rig rig(std::move(options));
  rig.launch_of("gone");
  EXPECT_EQ(rig.run("big").error().code(), Code::exhausted);
  EXPECT_EQ(rig.time("big", 1).error().code(), Code::exhausted);
  EXPECT_TRUE(rig.run("big")) << "it was planted for two launches";
  EXPECT_EQ(rig.run("gone").error().code(), Code::unavailable);
  EXPECT_EQ(rig.run("big").error().code(), Code::unavailable);
}

int differing_bits(const Bytes& a, const Bytes& b) {
  int bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) bits += __builtin_popcount(static_cast<unsigned>(a[i] ^ b[i]));
  return bits;
}

TEST(SimFaults, WrongOutputFlipsOneBitOfWhatTheLaunchWrote) {
  SimOptions options = quiet();
  options.faults = {{"u2", SimFault::wrong_output}};
  Rig rig(std::move(options));
  ASSERT_TRUE(rig.in->fill(3, 0, 1024));
  ASSERT_TRUE(rig.run("base"));
  const Bytes right = rig.output();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(rig.out->fill(0xA5, 0, 1024));
    ASSERT_TRUE(rig.run("u2"));
    EXPECT_EQ(differing_bits(rig.output(), right), 1);
  }
  Bytes input(1024);
  ASSERT_TRUE(rig.in->read(0, input));
  EXPECT_EQ(input, Bytes(1024, 3)) << "inputs are left alone";
  ASSERT_TRUE(rig.out->fill(0xA5, 0, 1024));
  ASSERT_TRUE(rig.time("u2", 3));
  EXPECT_EQ(differing_bits(rig.output(), right), 1);
}

TEST(SimFaults, WrongOutputOfANamedArgument) {
  SimOptions options = quiet();
  options.faults = {{"u2", SimFault::wrong_output, 0, 1, 1}};
  Rig rig(std::move(options));
  ASSERT_TRUE(rig.run("u2"));
  Bytes input(1024);
  ASSERT_TRUE(rig.in->read(0, input));
  EXPECT_EQ(differing_bits(input, Bytes(1024)), 1);
}

TEST(SimFaults, ThrottleChangesWithinTheWindowAndSlowsTheClock) {
  SimOptions options = quiet();
  options.timing.base_ms = 0.9;
  options.faults = {{"hot", SimFault::throttle}};
  options.clock_mhz = 1000;
  Rig rig(std::move(options));
  rig.launch_of("hot");
  const auto throttle = [&] { return rig.device->telemetry().throttle.value(); };
  EXPECT_EQ(throttle(), 0u);
  EXPECT_EQ(rig.device->telemetry().clock_mhz, 1000);
  ASSERT_TRUE(rig.time("base", 2));
  EXPECT_EQ(throttle(), 0u);
  ASSERT_TRUE(rig.time("hot", 2));
  EXPECT_NE(throttle(), 0u);
  EXPECT_FALSE(rig.device->telemetry().throttle_text.empty());
  EXPECT_EQ(rig.device->telemetry().clock_mhz, 900);
  EXPECT_DOUBLE_EQ(rig.time("base", 1).value()[0], 1.0);
  ASSERT_TRUE(rig.time("hot", 2));
  EXPECT_EQ(throttle(), 0u) << "every window of the variant changes it";
}

}  // namespace
}  // namespace furlong::device
