#pragma once
// The most random 4-byte loads that a device does in a second from a buffer of a given size: what the
// lottery's throughput is divided by.

#include <cstdint>
#include <string>

#include "furlong/device/device.h"

namespace furlong::bench {

struct Ceiling {
  double loads_per_s = 0;
  std::string how;  ///< the shape that reached it: "unroll 8, 256 threads"
};

/// Independent loads from random words of `bytes` (a multiple of 64): the best of several unrollings and
/// block sizes, each the median of some launches. `launch_loads` loads a launch. `invalid` where the device
/// runs none of CUDA, OpenCL and C++.
Result<Ceiling> random_load_ceiling(device::Device& device, std::uint64_t bytes, std::uint64_t launch_loads);

}  // namespace furlong::bench
