#pragma once
// The section of failed units, the same in plans and profiles.

#include <functional>
#include <span>
#include <vector>

#include "furlong/shard/internal/sections.h"
#include "furlong/shard/plan.h"

namespace furlong::shard::sections {

Out failed_units(std::span<const FailedUnit> failed);

/// Appends to `failed`. `look`, which may be empty, is asked of each with the byte behind its number before
/// it is appended. `incompatible` for an unknown tag, else the errors of `in` and `look`.
Status read_failed_units(In in, std::vector<FailedUnit>& failed,
                         const std::function<Status(const FailedUnit&, std::size_t byte)>& look = {});

}  // namespace furlong::shard::sections
