#pragma once
// The tables of a fleet's store (docs/formats/fleet-store.md).

#include <string>
#include <vector>

#include "furlong/fleet/store/sql/connection.h"

namespace furlong::fleet::sql {

/// steps[i] brings version i to i+1. A step that has been released is never changed.
std::vector<std::string> schema_steps(const Dialect& dialect);

}  // namespace furlong::fleet::sql
