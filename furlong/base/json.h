#pragma once
// The one JSON reader and writer. Objects keep the order in which keys were added, so that what
// is written is the same bytes every time. Including this file costs compile time: headers
// include json_fwd.h instead.

#include <nlohmann/json.hpp>

#include "furlong/base/json_fwd.h"
