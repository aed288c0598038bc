#pragma once
// Values as JSON.

#include "furlong/base/json_fwd.h"
#include "furlong/lattice/value.h"

namespace furlong::lattice {

/// A boolean, a number or a string, as the value is.
Json value_json(const Value& value);

}  // namespace furlong::lattice
