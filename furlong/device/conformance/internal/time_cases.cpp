#include <cmath>

#include "furlong/base/os/clock.h"
#include "furlong/device/conformance/internal/rig.h"

namespace furlong::device::conformance {
namespace {

Status times_every_repeat(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(1, 0)));
  const Launch launch = rig.launch("count", {BufferArgument{out.get()}}, 50);
  for (const int repeats : {1, 7}) {
    FURLONG_TRY(const auto times, rig.device->time({std::span(&launch, 1), repeats, 1, nullptr}));
    FURLONG_CHECK(expect(times.size() == static_cast<std::size_t>(repeats), "{} repeats gave {} times",
                         repeats, times.size()));
    for (const double ms : times) {
      FURLONG_CHECK(expect(std::isfinite(ms) && ms > 0, "a launch took {} ms", ms));
    }
  }
  return {};
}

// The device's own durations lie inside the call, so their sum cannot be longer than it. Nor can it be next
// to nothing of a call that is long enough, however busy the machine: seconds given for milliseconds show so.
Status times_agree_with_the_wall(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  if (rig.device->facts().virtual_time) return fail(Code::unavailable, "its time is virtual");
  const std::uint32_t n = 1 << 20;
  FURLONG_TRY(const auto x, buffer_of(*rig.device, std::vector<float>(n, 1)));
  FURLONG_TRY(const auto y, buffer_of(*rig.device, std::vector<float>(n, 1)));
  const std::vector<Launch> pipeline(
      2, rig.launch("saxpy", {scalar(1.0f), BufferArgument{x.get()}, BufferArgument{y.get()}, scalar(n)}, n));
  constexpr double kLeastShare = 0.01;
  constexpr double kLongEnoughMs = 1000;
  for (int batch = 3;; batch *= 4) {
    const double start_ms = system_clock().now_ms();
    FURLONG_TRY(const auto times, rig.device->time({pipeline, 5, batch, nullptr}));
    const double wall_ms = system_clock().now_ms() - start_ms;
    double sum_ms = 0;
    for (const double ms : times) sum_ms += ms * batch;
    FURLONG_CHECK(
        expect(sum_ms <= wall_ms * 1.01, "the repeats sum to {} ms within a call of {} ms", sum_ms, wall_ms));
    if (sum_ms >= wall_ms * kLeastShare) return {};
    FURLONG_CHECK(
        expect(wall_ms < kLongEnoughMs, "the repeats sum to only {} ms of a call of {} ms", sum_ms, wall_ms));
  }
}

// Whatever runs first (warming included), the output is that of whole pipelines.
Status a_pipeline_runs_whole_and_in_order(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const std::uint32_t n = 100;
  FURLONG_TRY(const auto a, buffer_of(*rig.device, std::vector<std::uint32_t>(n, 1)));
  FURLONG_TRY(const auto b, buffer_of(*rig.device, std::vector<std::uint32_t>(n, 0)));
  FURLONG_TRY(const auto flush, rig.device->allocate(1 << 20));
  const std::vector<Launch> pipeline{
      rig.launch("shift", {BufferArgument{a.get()}, BufferArgument{b.get()}, scalar(n)}, n),
      rig.launch("shift", {BufferArgument{b.get()}, BufferArgument{a.get()}, scalar(n)}, n)};
  FURLONG_TRY(const auto times, rig.device->time({pipeline, 4, 2, flush.get()}));
  FURLONG_CHECK(expect(times.size() == 4, "{} times", times.size()));
  FURLONG_TRY(const auto va, values_of<std::uint32_t>(*a));
  FURLONG_TRY(const auto vb, values_of<std::uint32_t>(*b));
  FURLONG_CHECK(expect(va[0] % 2 == 1 && va[0] >= 3, "the first buffer holds {}", va[0]));
  if (!rig.device->facts().virtual_time) {  // sim runs the behaviour once a call
    FURLONG_CHECK(expect(va[0] >= 1 + 2 * 4 * 2, "the first buffer holds {} after 8 pipelines", va[0]));
  }
  FURLONG_CHECK(expect_equal(va, std::vector<std::uint32_t>(n, va[0]), "the first buffer"));
  return expect_equal(vb, std::vector<std::uint32_t>(n, va[0] - 1), "the second buffer");
}

Status a_senseless_timing_is_invalid(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(1, 0)));
  const Launch launch = rig.launch("count", {BufferArgument{out.get()}});
  const std::span<const Launch> one(&launch, 1);
  FURLONG_CHECK(expect_error(rig.device->time({{}, 1, 1, nullptr}), Code::invalid, "an empty pipeline"));
  FURLONG_CHECK(expect_error(rig.device->time({one, 0, 1, nullptr}), Code::invalid, "0 repeats"));
  FURLONG_CHECK(expect_error(rig.device->time({one, 1, 0, nullptr}), Code::invalid, "a batch of 0"));
  Launch bad = launch;
  bad.grid = {0, 1, 1};
  const std::vector<Launch> half{launch, bad};
  FURLONG_CHECK(expect_error(rig.device->time({half, 1, 1, nullptr}), Code::invalid, "an empty grid"));
  // A pipeline is checked whole before any of it runs.
  FURLONG_TRY(const auto count, values_of<std::uint32_t>(*out));
  return expect_equal(count, {0u}, "launches before the refused one");
}

Status telemetry_makes_sense(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  const Telemetry now = rig.device->telemetry();
  for (const auto& [name, value] :
       {std::pair{"clock", now.clock_mhz}, std::pair{"memory clock", now.memory_clock_mhz},
        std::pair{"power", now.power_w}, std::pair{"power limit", now.power_limit_w},
        std::pair{"energy", now.energy_j}}) {
    if (value) FURLONG_CHECK(expect(std::isfinite(*value) && *value >= 0, "{} reads {}", name, *value));
  }
  if (now.temperature_c) {
    FURLONG_CHECK(expect(*now.temperature_c > -50 && *now.temperature_c < 200, "the temperature reads {}",
                         *now.temperature_c));
  }
  return {};
}

}  // namespace

std::vector<ConformanceCase> time_cases() {
  return {{"times_every_repeat", times_every_repeat},
          {"times_agree_with_the_wall", times_agree_with_the_wall},
          {"a_pipeline_runs_whole_and_in_order", a_pipeline_runs_whole_and_in_order},
          {"a_senseless_timing_is_invalid", a_senseless_timing_is_invalid},
          {"telemetry_makes_sense", telemetry_makes_sense}};
}

}  // namespace furlong::device::conformance
