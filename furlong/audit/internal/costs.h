#pragma once
// What a value takes beside the default in other currencies than time. Internal to furlong/audit.

#include <vector>

#include "furlong/audit/internal/collect.h"

namespace furlong::audit::internal {

/// One Cost a measure that the records tell, in the measures' order. Energy comes from races for energy where
/// there are any. `threshold` is a log ratio above 0.
std::vector<Cost> costs_of(const Pairs& pairs, double threshold);

/// Whether less of it is worth having for itself; fewer registers or spills or a faster compile are means.
bool is_end(Measure measure);

}  // namespace furlong::audit::internal
