#pragma once

#include <string_view>

#include "furlong/base/json_object.h"

namespace furlong::fleet {

/// Another schema than `expected` is `incompatible`, and told before anything else is asked of the document.
Status expect_schema(JsonObject& object, int expected, std::string_view where);

}  // namespace furlong::fleet
