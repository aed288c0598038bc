#pragma once
// The agent's state, in status.json of its data folder (docs/formats/agent-status.md). Value types; pure
// functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/fleet/agent/delivery.h"
#include "furlong/fleet/agent/schedule.h"
#include "furlong/fleet/agent/spool.h"
#include "furlong/fleet/agent/worker_view.h"

namespace furlong::fleet {

inline constexpr int agent_status_schema = 1;

struct AgentStatus {
  std::string version;
  std::string machine;
  int pid = 0;
  std::string started, written;  ///< UTC
  std::optional<record::Pair> current, next;
  std::optional<double> next_in_s;
  std::int64_t clock_jumps = 0;
  std::vector<WorkerView> devices;
  SpoolCounts spool;
  bool spool_full = false;
  std::string hub_url;  ///< empty: none is configured
  HubState hub;
  std::string manifest;               ///< version; empty: none
  std::vector<std::string> problems;  ///< of the agent itself, the newest last
};

/// The document, indented.
std::string print(const AgentStatus& status);
/// `incompatible`: another schema, found and expected. Unknown keys are skipped.
Result<AgentStatus> parse_agent_status(std::string_view text, std::string_view name);
/// For people: a table of devices and some lines.
std::string status_text(const AgentStatus& status);

}  // namespace furlong::fleet
