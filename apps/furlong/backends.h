#pragma once

#include "furlong/device/registry.h"

namespace furlong::app {

/// Adds every back end of this build (generated from tools/layers.txt).
void add_backends(device::Registry& registry);

}  // namespace furlong::app
