#pragma once

#include <vector>

#include "furlong/shard/executor_kind.h"

namespace furlong::app {

/// Every executor of this build (generated from tools/layers.txt).
std::vector<shard::ExecutorKind> executor_kinds();

}  // namespace furlong::app
