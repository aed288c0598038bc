#pragma once
// The hub: takes in signed batches, answers what the fleet has learned, serves the manifest and the dashboard
// (docs/formats/hub-api.md).

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/kinds.h"
#include "furlong/fleet/store/store.h"
#include "furlong/lattice/lattice.h"

namespace furlong::fleet {

/// A program whose knobs the hub audits; handed in by the app, since the fleet reads no program files.
struct ShippedLattice {
  std::string program, language;
  std::string source;  ///< hash of its text; empty: differs by epoch
  lattice::Lattice lattice;
};

struct HubOptions {
  HttpServerOptions http;
  /// Body of GET /v1/manifest, read again when the file changes; empty: none is served. Checked before it is
  /// served: what no machine would take is not given out, and /v1/rollout says why.
  std::filesystem::path manifest;
  /// Signs a stop when the canaries' races show a regression; nullopt: it is only told.
  std::optional<KeyPair> stop_key;
  std::filesystem::path web;  ///< folder of the dashboard's files; empty: a page that says where they are
  AggregateOptions aggregate;
  RegressionOptions regressions;
  double refresh_s = 10;              ///< aggregates are made anew at most so often, and only after a change
  double keep_days = 0;               ///< races older than this are forgotten; 0: none is
  double batches_per_minute = 120;    ///< of one machine, in the long run; bursts of as many
  double enrolments_per_minute = 30;  ///< of one address
  std::size_t most_batches = 64;      ///< judged, queued or written at one time; each holds a thread
  std::size_t commit_batches = 64;    ///< at most in one transaction; 1: each has its own
  /// That these may take: a batch is counted as judging_bytes() (judge.h).
  std::size_t most_batch_memory = 256u << 20;
  /// Clients' addresses are the last ones of X-Forwarded-For, which the proxy adds. Without a proxy anybody
  /// could write there what they like.
  bool behind_proxy = false;
  KindsOptions kinds;     ///< how much that is new one machine may bring
  double future_s = 600;  ///< a record from further ahead of the hub's clock is refused
  std::vector<ShippedLattice> lattices;
  std::string version;  ///< of Furlong
};

struct HubSurroundings {
  OpenStore open_store;
  Files* files = nullptr;
  Clock* clock = nullptr;
  std::function<void(LogLevel, std::string_view)> say;  ///< any thread, one at a time
};

class Hub {
 public:
  /// Opens the store, listens.
  static Result<std::unique_ptr<Hub>> start(const HubOptions& options, const HubSurroundings& with);
  virtual ~Hub() = default;
  virtual std::uint16_t port() const = 0;
  /// Until it is stopped; then what was acknowledged is in the store, and what was not is not.
  virtual Status run(const std::stop_token& stop) = 0;
};

}  // namespace furlong::fleet
