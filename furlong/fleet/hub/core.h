#pragma once
// The hub without its listener: requests in, replies out, and what goes on in the background.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "furlong/fleet/hub/audits.h"
#include "furlong/fleet/hub/canaries.h"
#include "furlong/fleet/hub/gate.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/hub.h"
#include "furlong/fleet/hub/intake.h"
#include "furlong/fleet/hub/learner.h"
#include "furlong/fleet/hub/metrics.h"
#include "furlong/fleet/hub/pages.h"
#include "furlong/fleet/hub/pool.h"
#include "furlong/fleet/hub/pruner.h"
#include "furlong/fleet/hub/router.h"
#include "furlong/fleet/hub/served_manifest.h"
#include "furlong/fleet/hub/web_files.h"
#include "furlong/fleet/hub/writer.h"

namespace furlong::fleet {

/// Threads that pages, probes and enrolments may take at one time; more of them are answered 503 at once.
inline constexpr int page_threads = 16, probe_threads = 4, enrolment_threads = 8;
/// For what is answered from memory: the manifest, aggregates, the dashboard, refusals.
inline constexpr int quick_threads = 4;

/// handle() and guard() from any thread; the others from one.
class HubCore {
 public:
  /// Opens the store, to see that it can; reads the dashboard's files and the manifest.
  static Result<std::unique_ptr<HubCore>> open(const HubOptions& options, const HubSurroundings& with);
  ~HubCore();

  ServerReply handle(const ServerRequest& request);
  std::optional<ServerReply> guard(const ServerRequest& head);

  /// Begins to learn and to forget in the background.
  void start();
  /// About once a second: looks at the manifest, tells what changed in the log.
  void tick();
  /// What is queued is written; then nothing more is taken.
  void stop();
  /// The listener, whose counts are shown; it must not be asked any more when it goes.
  void count_with(const HttpServer* server) { server_ = server; }

  const Router& router() const { return router_; }
  const Metrics& metrics() const { return metrics_; }
  Learner& learner() { return learner_; }
  ServedManifest& manifest() { return manifest_; }
  Pruner& pruner() { return pruner_; }

 private:
  HubCore(const HubOptions& options, const HubSurroundings& with);
  std::vector<Route> routes();
  ServerReply metrics_page(const ServerRequest& request);
  void say_state_of_writes();
  ServerReply in_turn(const Route& route, const ServerRequest& request, const std::string& item);
  void finish(std::string_view route, std::int64_t begin_ns, bool page, ServerReply& reply);

  const HubOptions options_;
  const HubSurroundings with_;
  const std::int64_t started_ns_;
  Metrics metrics_;
  StorePool pool_;
  ServedManifest manifest_;
  Canaries canaries_;
  Audits audits_;
  Learner learner_;
  Pruner pruner_;
  Writer writer_;
  Intake intake_;
  Pages pages_;
  WebFiles web_;
  Router router_;
  Gate pages_in_hand_{page_threads}, probes_in_hand_{probe_threads}, enrolments_in_hand_{enrolment_threads};
  std::atomic<const HttpServer*> server_ = nullptr;
  std::string failing_;  ///< what was told of the writes last
};

}  // namespace furlong::fleet
