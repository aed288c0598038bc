#pragma once
// A device without hardware: launches run on the host through a behaviour given by the caller, timings are scripted,
// synthetic or taken from a trace, faults and memory limits are planted, and time is virtual.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/device/device.h"

namespace furlong::device {

/// Cost of one pipeline of a module named `variant` (CompileRequest::name).
struct SimTiming {
  double base_ms = 0.25;
  std::map<std::string, double> gain;      ///< rate gain over base by variant: 0.01 runs 1% faster; absent: 0
  double noise = 0.001;                    ///< standard deviation of a launch, relative
  double autocorrelation = 0;              ///< of successive launches
  double ramp_per_s = 0;                   ///< relative slowdown a second (thermal drift)
  double first_launch_slow = 0.02;         ///< of a window
  double heavy_tail = 0;                   ///< probability of a launch slowed by 5 to 50%
  std::vector<double> step_at_s;           ///< clock steps of 1% at these times
  std::map<std::string, std::vector<double>> trace_ms;  ///< by variant ("*": any): replayed in order, cyclic; replaces the model
};

enum class SimFault {
  compile_error,   ///< compile answers `invalid` with a log
  compile_crash,   ///< compile answers `internal`
  hang,            ///< finish()/time() answer `timeout`
  trap,            ///< finish()/time() answer `internal`, the device is lost afterwards
  wrong_output,    ///< one bit of the first output differs
  out_of_memory,   ///< launch answers `exhausted`
  device_lost,     ///< everything answers `unavailable` from then on
  throttle,        ///< telemetry reports a throttle change during the window
};

struct SimFaultPlan {
  std::string variant;     ///< "*": any
  SimFault fault = SimFault::hang;
  int after_launches = 0;  ///< of that variant
};

/// What a launch does to the buffers: the caller's reference. Empty: launches leave memory untouched.
using SimBehaviour = std::function<Status(const CompileRequest& module, const Launch& launch)>;

struct SimOptions {
  Facts facts;                 ///< backend and index are set by the driver; languages empty: all
  SimTiming timing;
  std::vector<SimFaultPlan> faults;
  std::uint64_t memory_bytes = 8ull << 30;
  std::uint64_t seed = 1;
  SimBehaviour behaviour;
  double compile_ms = 50;
  std::map<std::string, int> registers;  ///< by variant
};

/// The clock is advanced by launches, compiles and uploads. One device per options entry.
std::unique_ptr<Driver> make_sim_driver(std::vector<SimOptions> devices, std::shared_ptr<FakeClock> clock = nullptr);
/// One device with the defaults ($FURLONG_SIM may name a JSON file with the options: docs/formats/sim.md).
std::unique_ptr<Driver> make_sim_driver();
/// Raw access for behaviours: the bytes of a sim buffer (nullptr for a buffer of another back end).
std::uint8_t* sim_buffer_bytes(Buffer& buffer);

}  // namespace furlong::device
