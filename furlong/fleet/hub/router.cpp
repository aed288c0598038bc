#include "furlong/fleet/hub/router.h"

#include <algorithm>
#include <set>

#include "furlong/base/text.h"
#include "furlong/fleet/hub/reply.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_shown = 60;

/// Whether the pattern holds the path, and what its parameter stands for.
bool matches(std::string_view pattern, std::string_view path, std::string& item) {
  const std::size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) return pattern == path;
  const std::string_view head = pattern.substr(0, brace);
  if (!path.starts_with(head) || path.size() == head.size()) return false;
  item = path.substr(head.size());
  return true;
}

std::string shown(std::string_view text) { return one_line(text.substr(0, most_shown)); }

/// A misspelt filter must not show everything.
std::string wrong_parameters(const ServerRequest& request, const Route& route) {
  std::set<std::string> seen;
  for (const auto& [name, value] : request.query) {
    if (std::ranges::find(route.parameters, name) == route.parameters.end())
      return route.parameters.empty()
                 ? fmt::format("{} takes no parameters, '{}' is one", route.path, shown(name))
                 : fmt::format("unknown parameter '{}'{}; there are: {}", shown(name),
                               did_you_mean(name, route.parameters), join(route.parameters, ", "));
    if (!seen.insert(name).second) return fmt::format("the parameter '{}' is given twice", name);
  }
  return "";
}

}  // namespace

Router::Found Router::find(const ServerRequest& request) const {
  Found found;
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::vector<std::string> allowed;
  for (const Route& route : routes_) {
    std::string item;
    if (!matches(route.path, request.path, item)) continue;
    if (route.method != method) {
      allowed.push_back(route.method);
      if (route.method == "GET") allowed.emplace_back("HEAD");
      continue;
    }
    if (const std::string wrong = wrong_parameters(request, route); !wrong.empty()) {
      found.refusal = error_reply(400, Code::invalid, wrong);
      return found;
    }
    found.route = &route;
    found.item = std::move(item);
    return found;
  }
  if (allowed.empty()) {
    found.refusal = error_reply(
        404, Code::invalid,
        fmt::format("there is no '{}' here; GET /v1/openapi.json says what there is", shown(request.path)));
    return found;
  }
  found.refusal = error_reply(405, Code::invalid,
                              fmt::format("'{}' is not for {}; allowed: {}", shown(request.method),
                                          shown(request.path), join(allowed, ", ")));
  found.refusal.headers.emplace_back("Allow", join(allowed, ", "));
  return found;
}

bool Router::is_interface(std::string_view path) {
  return path == "/v1" || path.starts_with("/v1/") || path == "/metrics" || path == "/healthz";
}

}  // namespace furlong::fleet
