#pragma once

#include <vector>

#include "furlong/fleet/store/store.h"

namespace furlong::app {

/// Every kind of fleet store of this build (generated from tools/layers.txt).
std::vector<fleet::StoreKind> store_kinds();

}  // namespace furlong::app
