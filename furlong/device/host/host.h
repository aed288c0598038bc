#pragma once

#include <memory>

#include "furlong/device/device.h"

namespace furlong::device {

std::unique_ptr<Driver> make_host_driver();

}  // namespace furlong::device
