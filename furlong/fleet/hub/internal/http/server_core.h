#pragma once
// What all connections of a server share.

#include <atomic>
#include <cstdint>
#include <utility>

#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/internal/http/budget.h"
#include "furlong/fleet/hub/internal/http/handler_pool.h"

namespace furlong::fleet {

using Counter = std::atomic<std::uint64_t>;

struct ServerCore {
  ServerCore(HttpServerOptions with, HttpGuard before, HttpHandler then)
      : options(std::move(with)),
        guard(std::move(before)),
        handler(std::move(then)),
        bodies(options.most_memory_bytes),
        replies(options.most_memory_bytes),
        pool(options.threads, options.most_waiting) {}

  const HttpServerOptions options;
  const HttpGuard guard;
  const HttpHandler handler;
  MemoryBudget bodies, replies;
  Counter accepted{0}, refused_connections{0}, requests{0}, timeouts{0}, malformed{0}, too_large{0},
      too_busy{0}, failed{0}, connections{0};
  std::atomic<bool> stopping{false};
  HandlerPool pool;  // last: its threads use the rest

  /// Counts a fault of a handler, a guard or a reply, and logs the first and then ever fewer of them: a
  /// client may be able to cause them.
  void note_failure(std::string_view what);
};

}  // namespace furlong::fleet
