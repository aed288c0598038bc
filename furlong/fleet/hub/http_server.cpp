#include "furlong/fleet/hub/http_server.h"

namespace furlong::fleet {

std::string_view ServerRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

std::optional<std::string> ServerRequest::parameter(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return value;
  return std::nullopt;
}

}  // namespace furlong::fleet
