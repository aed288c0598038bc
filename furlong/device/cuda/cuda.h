#pragma once

#include <memory>

#include "furlong/device/device.h"

namespace furlong::device {

/// Answers `unavailable` everywhere: without NVIDIA's driver because it is not there, with it because the
/// back end is not built yet. The compiler half (nvrtc.h) works on its own.
std::unique_ptr<Driver> make_cuda_driver();

}  // namespace furlong::device
