#pragma once
// The agent: a worker per device, the schedule, the way of the records, in one data folder.

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/fleet/agent/config.h"
#include "furlong/fleet/agent/status.h"
#include "furlong/fleet/http.h"
#include "furlong/record/worker_protocol.h"

namespace furlong::fleet {

class ManifestVerifier;

/// What an agent works with; all of it outlives the agent.
struct AgentSurroundings {
  std::string version;
  Files* files = nullptr;
  Processes* processes = nullptr;
  Clock* clock = nullptr;
  HttpClient* http = nullptr;            ///< needed when a hub is configured
  ManifestVerifier* verifier = nullptr;  ///< nullptr: the configuration's [manifest], else none is fetched
  std::uint64_t seed = 0;                ///< of record ids and of the jitter between retries
  /// Messages for people, and lines for machines ("worker: race …", "TUNING {…}"); any thread, one at a time.
  std::function<void(LogLevel, std::string_view)> say;
  std::function<void(std::string_view)> say_plain;
  /// May be empty. Every event of every worker, and every new find; any thread, one at a time.
  std::function<void(const DeviceInfo&, const record::WorkerEvent&)> on_event;
};

/// data/agent.lock, data/status.json
std::filesystem::path agent_lock_file(const std::filesystem::path& data);
std::filesystem::path agent_status_file(const std::filesystem::path& data);
/// Whether an agent holds the data folder now.
Result<bool> agent_runs(const std::filesystem::path& data);

class Agent {
 public:
  /// Takes the data folder (`denied` when another agent has it), opens the spool and the machine's key, and
  /// asks which devices are here.
  static Result<std::unique_ptr<Agent>> open(const AgentConfig& config, const AgentSurroundings& with,
                                             const std::stop_token& stop);
  virtual ~Agent() = default;
  /// Works until it is stopped; then workers quit in order, and what they recorded is taken in.
  virtual Status run(const std::stop_token& stop) = 0;
  virtual AgentStatus status() = 0;
};

}  // namespace furlong::fleet
