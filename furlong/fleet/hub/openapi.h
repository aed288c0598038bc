#pragma once

#include <string_view>

namespace furlong::fleet {

/// furlong/fleet/hub/openapi.json, as it was at the build.
std::string_view openapi_text();

}  // namespace furlong::fleet
