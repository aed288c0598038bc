#pragma once

#include <memory>

#include "furlong/device/device.h"

namespace furlong::device {

/// Cards of NVIDIA, through the driver, NVRTC and NVML, which are opened at run time. Without the driver it
/// answers `unavailable`, with what to do. The compiler half (nvrtc.h) works on its own.
std::unique_ptr<Driver> make_cuda_driver();

}  // namespace furlong::device
