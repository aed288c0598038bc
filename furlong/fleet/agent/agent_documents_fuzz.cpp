// The documents that the agent reads from other programs: its own status file, the list of devices, a chain's
// lines.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/schedule.h"
#include "furlong/fleet/agent/status.h"

using namespace furlong;
using namespace furlong::fleet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  if (const auto status = parse_agent_status(text, "status.json")) {
    const std::string printed = print(*status);
    const auto again = parse_agent_status(printed, "status.json");
    if (!again || print(*again) != printed || status_text(*status).empty()) std::abort();
  }
  if (const auto line = parse_chain_line(text)) {
    ChainSchedule schedule(5);
    schedule.take(*line);
    const Due due = schedule.due(0);
    if (due.current.has_value() == (line->height < line->boundary)) std::abort();
  }
  if (const auto devices = parse_devices(text))
    for (const DeviceInfo& device : *devices)
      if (device.slot.size() != 16) std::abort();
  return 0;
}
