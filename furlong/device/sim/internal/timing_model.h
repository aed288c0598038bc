#pragma once
// How long a simulated launch takes: SimTiming as a seeded random process.

#include <map>
#include <string>

#include "furlong/base/random.h"
#include "furlong/device/sim/sim.h"

namespace furlong::device::internal {

/// One open device's timings. One thread.
class TimingModel {
 public:
  /// `timing` has passed check_sim_options.
  TimingModel(SimTiming timing, std::uint64_t seed);
  TimingModel(const TimingModel&) = delete;  // series_ points into timing_
  TimingModel& operator=(const TimingModel&) = delete;

  /// What the next launches of `variant` belong to: one time() call.
  void begin_window(const std::string& variant);
  /// The next launch of that window, `at_s` after the device was opened.
  double launch_ms(double at_s, bool after_flush);
  /// Added to each timed repeat.
  double jitter_ms();
  /// The cost without noise: of launches outside a window.
  double nominal_ms(const std::string& variant, double at_s) const;
  /// Slowness by drift and steps, 1 at the start: also what the clock frequency has fallen by.
  double drift(double at_s) const;

 private:
  struct Series {
    const std::vector<double>* values = nullptr;
    std::size_t window = 0;  // index of the window in hand
    bool begun = false;
    std::size_t next = 0;  // index of the next value
  };
  double gained(const std::string& variant) const;
  const std::string* trace_key(const std::string& variant) const;
  double trace_value();
  double step(double& state, double deviation);

  SimTiming timing_;
  Random random_;
  std::map<std::string, Series> series_;
  Series* trace_ = nullptr;  // of the window in hand; nullptr: the model
  double cost_ms_ = 0;       // of the window's variant, without noise
  double launch_noise_ = 0, window_noise_ = 0;
  bool first_ = true;
};

}  // namespace furlong::device::internal
