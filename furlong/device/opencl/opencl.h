#pragma once

#include <memory>

#include "furlong/device/device.h"

namespace furlong::device {

std::unique_ptr<Driver> make_opencl_driver();

}  // namespace furlong::device
