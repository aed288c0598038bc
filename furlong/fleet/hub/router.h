#pragma once
// Which paths the hub knows, and what may be asked of each. Immutable once made; thread safe.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/fleet/hub/http_server.h"

namespace furlong::fleet {

/// Which of the hub's threads a route may take: those of one kind leave the others theirs.
enum class Share {
  quick,      ///< answered from memory
  batch,      ///< has its place (Writer::reserve)
  page,       ///< reads the store, for whoever asks
  probe,      ///< likewise, so that the hub is seen to live
  enrolment,  ///< waits for the store's writer
};

struct Route {
  std::string method;  ///< "GET" (HEAD too) or "POST"
  std::string path;    ///< "/v1/cards/{key}": the last part may be a parameter, and may have slashes
  std::vector<std::string> parameters;
  /// `item`: what the parameter of the path stands for.
  std::function<ServerReply(const ServerRequest& request, const std::string& item)> handle;
  Share share = Share::quick;
};

class Router {
 public:
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}
  const std::vector<Route>& routes() const { return routes_; }

  struct Found {
    const Route* route = nullptr;  ///< nullptr: `refusal` says why
    std::string item;
    ServerReply refusal;  ///< 404, 405 with Allow, 400 for a parameter that is unknown or given twice
  };
  Found find(const ServerRequest& request) const;
  /// Whether a path is for the router at all, and not for the dashboard's files.
  static bool is_interface(std::string_view path);

 private:
  std::vector<Route> routes_;
};

}  // namespace furlong::fleet
