#pragma once
// What GET /v1/… answers (docs/formats/hub-api.md).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/hub/audits.h"
#include "furlong/fleet/hub/canaries.h"
#include "furlong/fleet/hub/learner.h"
#include "furlong/fleet/hub/metrics.h"
#include "furlong/fleet/hub/pool.h"
#include "furlong/fleet/hub/router.h"
#include "furlong/fleet/hub/served_manifest.h"

namespace furlong::fleet {

/// What the pages read; all of it thread safe, and living longer than they.
struct PageSources {
  StorePool& pool;
  const Learner& learner;
  const Audits& audits;
  const ServedManifest& manifest;
  const Canaries& canaries;
  Metrics& metrics;
  Clock& clock;
  std::string version;
  std::int64_t started_ns = 0;
};

/// Thread safe.
class Pages {
 public:
  explicit Pages(PageSources from) : from_(std::move(from)) {}
  /// GET routes of /v1 and /healthz.
  std::vector<Route> routes();

 private:
  ServerReply summary(const ServerRequest& request);
  ServerReply cards(const ServerRequest& request);
  ServerReply card(const ServerRequest& request, const std::string& name);
  ServerReply tuning(const ServerRequest& request);
  ServerReply races(const ServerRequest& request);
  ServerReply race(const ServerRequest& request, const std::string& id);
  ServerReply machines(const ServerRequest& request);
  ServerReply regressions(const ServerRequest& request);
  ServerReply knobs(const ServerRequest& request);
  ServerReply knobs_of(const ServerRequest& request, const std::string& program);
  ServerReply rollout(const ServerRequest& request);
  ServerReply manifest(const ServerRequest& request);
  ServerReply health(const ServerRequest& request);

  ServerReply with_learned(const std::function<ServerReply(const Learned&)>& page) const;
  ServerReply store_failed(const Error& error) const;
  Result<RaceFilter> race_filter(const ServerRequest& request) const;

  const PageSources from_;
};

}  // namespace furlong::fleet
