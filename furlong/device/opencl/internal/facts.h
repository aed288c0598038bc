#pragma once
// The devices of every platform, and what they are.

#include <vector>

#include "furlong/device/device.h"
#include "furlong/device/opencl/internal/cl.h"

namespace furlong::device::cl {

struct Found {
  DeviceId device = nullptr;
  Facts facts;
  bool pocl = false;        ///< compiles once more at the first launch; compiles best on one thread
  bool nv_verbose = false;  ///< takes -cl-nv-verbose, which tells registers and spills
};

/// In the loader's order, which gives the indices. Empty when no platform has a device; `unavailable` names
/// the platforms and their errors when none lists one because of them.
Result<std::vector<Found>> find_devices(const Api& api);

/// The name for records: "NVIDIA Corporation" is NVIDIA.
std::string vendor_word(std::string_view vendor);
/// PoCL's CPU in "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-skylake": "x86_64-pc-linux-gnu-skylake";
/// empty when there is none.
std::string pocl_arch(std::string_view device_version);

}  // namespace furlong::device::cl
