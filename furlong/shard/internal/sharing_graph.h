#pragma once

#include "furlong/shard/internal/scotch.h"
#include "furlong/shard/order.h"

namespace furlong::shard {

/// Units weighted by their own bytes, linked to the owners of what they refer to, weighted by its bytes.
scotch::Graph sharing_graph(const Sharing& sharing);

}  // namespace furlong::shard
