#pragma once
// A device without hardware: launches run on the host through a behaviour given by the caller, timings are
// scripted, synthetic or taken from a trace, faults and memory limits are planted, and time is virtual. The
// same options, seed and calls give the same answers, to the last digit.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/device/device.h"

namespace furlong::device {

/// Cost of one pipeline of a module named `variant` (CompileRequest::name; the pipeline's first launch names
/// it). One launch takes
///   base_ms / (1 + gain) · (1 + noise) · (1 + window noise) · drift · slowness of a first, cold or throttled
///   launch
/// where both noises are normal and autocorrelated, never under -90%.
struct SimTiming {
  double base_ms = 0.25;
  std::map<std::string, double> gain;  ///< rate gain over base by variant: 0.01 runs 1% faster; absent: 0
  double noise = 0.001;                ///< standard deviation of a launch, relative
  double window_noise = 0;             ///< standard deviation of a window (one time() call), relative
  double autocorrelation = 0;          ///< of successive launches, and of successive windows; in (-1, 1)
  double jitter_ms = 0;   ///< added to each repeat: |normal| times this, so that only batches tame it
  double ramp_per_s = 0;  ///< relative slowdown a second since the device was opened (thermal drift)
  double first_launch_slow = 0.02;  ///< of a window
  double cold_slow = 0;             ///< of a launch after a flush
  double heavy_tail = 0;            ///< probability of a launch slowed by 5 to 50%
  std::vector<double> step_at_s;    ///< the clock steps down by 1% at each of these times
  /// By variant ("*": any, one series for all): replayed in order, cyclic. Replaces everything above but the
  /// gain.
  std::map<std::string, std::vector<double>> trace_ms;
  /// Values in a trace that are one window: each time() call then starts at the next window, and what it
  /// times beyond the window repeats all but its first value. 0: a trace has no windows.
  int trace_window = 0;
};

enum class SimFault {
  compile_error,  ///< compile answers `invalid` with a log
  compile_crash,  ///< compile answers `internal`
  hang,           ///< finish()/time() answer `timeout` after SimOptions::hang_ms
  trap,           ///< finish()/time() answer `internal`, the device is lost afterwards
  wrong_output,   ///< one bit of the output differs
  out_of_memory,  ///< launch and time() answer `exhausted`
  device_lost,    ///< everything answers `unavailable` from then on; opening the device again mends it
  throttle,  ///< the throttle state changes within each window of the variant; while set, all runs 10% slower
};
std::string_view sim_fault_name(SimFault fault);

struct SimFaultPlan {
  std::string variant;  ///< "*": any
  SimFault fault = SimFault::hang;
  int after_launches = 0;  ///< of that variant on this open device; no meaning for compile faults
  int for_launches = 0;    ///< it is over after so many; 0: never
  /// wrong_output: the argument to damage. -1: the first buffer that the launch changed.
  int argument = -1;
};

/// What a launch does to the buffers: the caller's reference. Empty: launches leave memory untouched. An
/// `invalid` answer refuses the launch at once (a wrong argument count); any other error shows at finish().
using SimBehaviour = std::function<Status(const CompileRequest& module, const Launch& launch)>;
/// What a compiler would say of the source; may run on several threads. Empty: everything compiles.
using SimCompiler = std::function<Status(const CompileRequest& module)>;

struct SimOptions {
  /// `backend`, `index` and `virtual_time` are set by the driver; every other member left at its default (or
  /// empty) gets a plausible value: all languages, 1024 threads a block, warps of 32, the memory of
  /// `memory_bytes`.
  Facts facts;
  SimTiming timing;
  std::vector<SimFaultPlan> faults;
  std::uint64_t memory_bytes = 8ull << 30;
  std::uint64_t seed = 1;
  SimBehaviour behaviour;  ///< launch() runs it every time, time() once a call
  SimCompiler compiler;
  double compile_ms = 50;
  int compile_threads = 4;
  double hang_ms = 2000;
  double transfer_gb_per_s = 25;          ///< of Buffer::write and read
  std::map<std::string, int> registers;   ///< by variant; else "*", else 32
  std::map<std::string, double> power_w;  ///< drawn while it runs, by variant; else "*", else 300
  double idle_w = 60;
  double power_limit_w = 400;
  double clock_mhz = 1500;  ///< at the start; drift and throttling lower it
};

/// The clock is advanced by launches (at finish() or time()), compiles and transfers. One device per options
/// entry. Options that make no sense (autocorrelation of 1, an empty trace) answer `invalid` at list() and
/// open().
std::unique_ptr<Driver> make_sim_driver(std::vector<SimOptions> devices,
                                        std::shared_ptr<FakeClock> clock = nullptr);
/// One device with the defaults, or those of the JSON file that $FURLONG_SIM names (docs/formats/sim.md);
/// what is wrong with that file is the answer of list() and open().
std::unique_ptr<Driver> make_sim_driver();

/// Reads docs/formats/sim.md: one entry a device. `invalid` names `name`, the key and the nearest valid one;
/// `incompatible` another schema.
Result<std::vector<SimOptions>> parse_sim_options(std::string_view json, std::string_view name);
/// `invalid` names the member that makes no sense.
Status check_sim_options(const SimOptions& options);

/// Raw access for behaviours: the bytes of a sim buffer (nullptr for a buffer of another back end).
std::uint8_t* sim_buffer_bytes(Buffer& buffer);

}  // namespace furlong::device
