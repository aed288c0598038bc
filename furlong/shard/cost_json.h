#pragma once
// A Cost in a journal and in reports.

#include <string>

#include "furlong/base/json_fwd.h"
#include "furlong/shard/types.h"

namespace furlong::shard {

Json cost_json(const Cost& cost);
/// `corrupt` with `name` for what cost_json() did not write.
Result<Cost> parse_cost(const Json& json, const std::string& name);

}  // namespace furlong::shard
