#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "furlong/device/sim/internal/test_rig.h"

namespace furlong::device {
namespace {

using internal::quiet;
using internal::Rig;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double deviation(const std::vector<double>& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double v : values) sum += (v - centre) * (v - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}
double lag_one(const std::vector<double>& values) {
  const double centre = mean(values);
  double sum = 0, all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    all += (values[i] - centre) * (values[i] - centre);
    if (i > 0) sum += (values[i] - centre) * (values[i - 1] - centre);
  }
  return sum / all;
}

TEST(SimTime, QuietTimesAreTheScript) {
  SimOptions options = quiet();
  options.timing.base_ms = 2;
  options.timing.gain = {{"fast", 0.25}, {"slow", -0.5}};
  options.timing.first_launch_slow = 0.1;
  Rig rig(std::move(options));
  for (const char* name : {"base", "fast", "slow"}) rig.launch_of(name);
  const double before_ms = rig.clock->now_ms();
  const auto base = rig.time("base", 3).value();
  EXPECT_THAT(base, ::testing::ElementsAre(::testing::DoubleNear(2.2, 1e-12), 2.0, 2.0));
  EXPECT_NEAR(rig.clock->now_ms() - before_ms, 6.2, 1e-5) << "time() advances the clock by what it measured";
  EXPECT_DOUBLE_EQ(rig.time("fast", 2).value()[1], 1.6);
  EXPECT_DOUBLE_EQ(rig.time("slow", 2).value()[1], 4);
  const auto batched = rig.time("base", 2, 10).value();
  EXPECT_NEAR(batched[0], 2.02, 1e-12) << "only the first of the batch is slow";
  EXPECT_NEAR(batched[1], 2.0, 1e-12);
}

TEST(SimTime, LaunchesAdvanceTheClockAtFinish) {
  Rig rig(quiet());
  const Launch launch = rig.launch_of("base");
  const double before_ms = rig.clock->now_ms();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(rig.device->launch(launch));
  EXPECT_EQ(rig.clock->now_ms(), before_ms);
  ASSERT_TRUE(rig.device->finish());
  EXPECT_NEAR(rig.clock->now_ms() - before_ms, 1, 1e-9);
}

TEST(SimTime, NoiseHasTheStatedDeviationAndCorrelation) {
  for (const double rho : {0.0, 0.8, -0.5}) {
    SimOptions options = quiet();
    options.timing.base_ms = 1;
    options.timing.noise = 0.01;
    options.timing.autocorrelation = rho;
    Rig rig(std::move(options));
    const auto ms = rig.time("base", 20000).value();
    EXPECT_NEAR(mean(ms), 1, 0.001) << rho;
    EXPECT_NEAR(deviation(ms), 0.01, 0.0006) << rho;
    EXPECT_NEAR(lag_one(ms), rho, 0.03);
  }
}

TEST(SimTime, WindowNoiseIsSharedByAWindow) {
  SimOptions options = quiet();
  options.timing.base_ms = 1;
  options.timing.window_noise = 0.003;
  Rig rig(std::move(options));
  std::vector<double> windows;
  for (int i = 0; i < 3000; ++i) {
    const auto ms = rig.time("base", 3).value();
    EXPECT_EQ(ms[0], ms[2]);
    windows.push_back(ms[0]);
  }
  EXPECT_NEAR(deviation(windows), 0.003, 0.0002);
}

TEST(SimTime, RampStepsTailsJitterAndColdCaches) {
  SimOptions options = quiet();
  options.timing.base_ms = 100;
  options.timing.ramp_per_s = 0.01;
  options.timing.step_at_s = {5, 5};
  Rig ramped(options);
  ramped.launch_of("base");
  const double start_ms = ramped.clock->now_ms();
  EXPECT_NEAR(ramped.time("base", 1).value()[0], 100 * (1 + 0.01 * start_ms * 1e-3), 1e-9);
  ramped.clock->advance_ns(10'000'000'000);
  EXPECT_NEAR(ramped.time("base", 1).value()[0], 100 * 1.1 * 1.01 * 1.01, 0.2);

  options = quiet();
  options.timing.base_ms = 1;
  options.timing.heavy_tail = 0.1;
  Rig tailed(options);
  const auto ms = tailed.time("base", 5000).value();
  const auto slow = std::ranges::count_if(ms, [](double v) { return v > 1; });
  EXPECT_NEAR(static_cast<double>(slow) / 5000, 0.1, 0.015);
  EXPECT_TRUE(std::ranges::all_of(ms, [](double v) { return v == 1 || (v >= 1.05 && v <= 1.5); }));

  options.timing.heavy_tail = 0;
  options.timing.base_ms = 0.01;
  options.timing.jitter_ms = 0.005;
  Rig jittery(options);
  EXPECT_GT(deviation(jittery.time("base", 2000).value()), 0.002);
  EXPECT_LT(deviation(jittery.time("base", 500, 100).value()), 0.0001) << "a batch tames the jitter";

  options.timing.jitter_ms = 0;
  options.timing.cold_slow = 0.5;
  Rig cold(options);
  auto flush = cold.device->allocate(1 << 20).value();
  EXPECT_NEAR(cold.time("base", 2, 1, flush.get()).value()[1], 0.015, 1e-12);
  EXPECT_NEAR(cold.time("base", 2).value()[1], 0.01, 1e-12);
}

TEST(SimTime, TracesAreReplayedInOrder) {
  SimOptions options = quiet();
  options.timing.trace_ms = {{"u2", {5, 6}}, {"*", {1, 2, 3}}};
  options.timing.gain = {{"planted", 1.0}};
  Rig rig(std::move(options));
  EXPECT_EQ(rig.time("base", 2).value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(rig.time("u2", 3).value(), (std::vector<double>{5, 6, 5}));
  EXPECT_EQ(rig.time("other", 2).value(), (std::vector<double>{3, 1})) << "'*' is one series for all";
  EXPECT_EQ(rig.time("planted", 1).value(), (std::vector<double>{1})) << "the gain divides the trace";
}

TEST(SimTime, TraceWindowsStartAtTheirFirstLaunch) {
  SimOptions options = quiet();
  options.timing.trace_ms = {{"*", {9, 1, 2, 8, 3, 4}}};
  options.timing.trace_window = 3;
  Rig rig(std::move(options));
  EXPECT_EQ(rig.time("a", 2).value(), (std::vector<double>{9, 1}));
  EXPECT_EQ(rig.time("b", 6).value(), (std::vector<double>{8, 3, 4, 3, 4, 3}));
  EXPECT_EQ(rig.time("c", 1).value(), (std::vector<double>{9}));
}

TEST(SimTime, TheSameSeedGivesTheSameTimesAndAnotherDoesNot) {
  const auto series = [](std::uint64_t seed) {
    SimOptions options;
    options.seed = seed;
    options.timing.heavy_tail = 0.1;
    options.timing.autocorrelation = 0.5;
    options.timing.window_noise = 0.01;
    options.timing.jitter_ms = 0.01;
    Rig rig(options);
    std::vector<double> all;
    for (const char* name : {"base", "u2", "base"}) {
      const auto ms = rig.time(name, 20, 3).value();
      all.insert(all.end(), ms.begin(), ms.end());
    }
    return all;
  };
  EXPECT_EQ(series(1), series(1));
  EXPECT_NE(series(1), series(2));
}

TEST(SimTime, SenselessRequestsAreRefused) {
  Rig rig(quiet());
  EXPECT_EQ(rig.device->time({}).error().code(), Code::invalid);
  EXPECT_EQ(rig.time("base", 0).error().code(), Code::invalid);
  EXPECT_EQ(rig.time("base", 1, 0).error().code(), Code::invalid);
  EXPECT_TRUE(rig.time("base", 1));
}

TEST(SimTelemetry, PowerFollowsTheVariantAndEnergyAddsUp) {
  SimOptions options = quiet();
  options.timing.base_ms = 10;
  options.compile_ms = 0;
  options.power_w = {{"u2", 200}, {"*", 100}};
  options.idle_w = 10;
  Rig rig(std::move(options));
  EXPECT_EQ(rig.device->telemetry().power_w, 10);
  ASSERT_TRUE(rig.time("base", 100));
  EXPECT_EQ(rig.device->telemetry().power_w, 100);
  ASSERT_TRUE(rig.time("u2", 100));
  EXPECT_EQ(rig.device->telemetry().power_w, 200);
  rig.clock->advance_ns(1'000'000'000);
  EXPECT_NEAR(*rig.device->telemetry().energy_j, 100 + 200 + 10, 1e-6);
  EXPECT_EQ(rig.device->telemetry().power_limit_w, 400);
}

}  // namespace
}  // namespace furlong::device
