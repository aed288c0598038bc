#pragma once
// What the host CPU is, from /proc/cpuinfo and its like.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "furlong/device/device.h"

namespace furlong::device::host {

struct Cpu {
  std::string vendor;    ///< "Intel", "AMD", "ARM", or what the system says
  std::string model;     ///< "AMD EPYC 9654 96-Core Processor"
  std::string arch;      ///< "x86-64-v3", "aarch64", …
  std::string features;  ///< the flags line as it stands: part of the cache key of -march=native code
};

/// Reads the text of /proc/cpuinfo; `machine` is uname's word ("x86_64"). Never fails: what the text does
/// not say falls back to `machine`.
Cpu parse_cpuinfo(std::string_view cpuinfo, std::string_view machine);
Cpu this_cpu();
/// Cores that this process may run on (its affinity mask), at least 1.
int usable_cores();
std::string kernel_release();
/// Clock and package temperature, where the system lets this process read them.
Telemetry cpu_telemetry();

/// Joules of all packages together, from counters that start anew every quarter of an hour or so of full
/// load: it must be read more often than they do. One thread.
class EnergyCounter {
 public:
  /// `folder`: /sys/class/powercap or what stands in for it in a test.
  explicit EnergyCounter(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Since some start; nullopt where there is no counter or this process may not read it.
  std::optional<double> joules();

 private:
  struct Package {
    double last_uj = 0, sum_uj = 0;
  };
  std::filesystem::path folder_;
  std::map<int, Package> packages_;
};

}  // namespace furlong::device::host
