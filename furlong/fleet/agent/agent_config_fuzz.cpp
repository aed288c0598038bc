// A configuration is read or refused; what is read holds what the agent relies on.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/fleet/agent/config.h"

using namespace furlong;
using namespace furlong::fleet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = parse_agent_config(as_text({data, size}), "agent.toml");
  if (!config) return 0;
  if (config->data.empty() || (!config->all_devices && config->devices.empty())) std::abort();
  if (config->work.target == 0) std::abort();
  const ScheduleConfig& schedule = config->schedule;
  if (schedule.kind == ScheduleConfig::Kind::clock &&
      (schedule.seed.empty() || schedule.lead >= schedule.epoch_s))
    std::abort();
  if (schedule.kind == ScheduleConfig::Kind::command && schedule.command.empty()) std::abort();
  return 0;
}
