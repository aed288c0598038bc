#include "furlong/fleet/hub/hub.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "furlong/fleet/hub/core.h"

namespace furlong::fleet {
namespace {

constexpr std::chrono::seconds tick_every{1};

/// Every batch in hand has a thread that waits for its transaction, and the other kinds of requests have
/// theirs besides (core.h).
HttpServerOptions server_options(const HubOptions& options) {
  HttpServerOptions http = options.http;
  http.threads = std::max(http.threads, static_cast<int>(options.most_batches) + page_threads +
                                            probe_threads + enrolment_threads + quick_threads);
  if (options.behind_proxy) http.most_connections_per_peer = http.most_connections;
  return http;
}

class RunningHub : public Hub {
 public:
  RunningHub(std::unique_ptr<HubCore> core, std::unique_ptr<HttpServer> server)
      : core_(std::move(core)), server_(std::move(server)) {}
  ~RunningHub() override { end(); }

  std::uint16_t port() const override { return server_->port(); }

  Status run(const std::stop_token& stop) override {
    std::mutex mutex;
    std::condition_variable_any wake;
    while (!stop.stop_requested()) {
      core_->tick();
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, tick_every, [] { return false; });
    }
    end();
    return {};
  }

 private:
  /// Requests in progress end while the writer still writes; then what it has left.
  void end() {
    server_->stop();
    core_->count_with(nullptr);
    core_->stop();
  }

  std::unique_ptr<HubCore> core_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace

Result<std::unique_ptr<Hub>> Hub::start(const HubOptions& options, const HubSurroundings& with) {
  FURLONG_TRY(auto core, HubCore::open(options, with));
  HubCore* const hub = core.get();
  FURLONG_TRY(auto server,
              serve_http(
                  server_options(options), [hub](const ServerRequest& head) { return hub->guard(head); },
                  [hub](const ServerRequest& request) { return hub->handle(request); }));
  hub->count_with(server.get());
  hub->start();
  return std::make_unique<RunningHub>(std::move(core), std::move(server));
}

}  // namespace furlong::fleet
