#pragma once
// The one place that joins race and shard: the executor "campaign", whose units are races. A unit is
// (program, problem, device); its check compiles base, gates it and times one launch; its job is the whole
// race; its receipt is the race record. docs/shards.md, docs/formats/campaign.md.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/shard/executor_kind.h"

namespace furlong::campaign {

inline constexpr std::string_view kExecutorName = "campaign";
/// Of items, costs and receipts together.
inline constexpr int kExecutorVersion = 1;

/// What races run on: given by the application, since only it names back ends. One thread at a time.
class Devices {
 public:
  virtual ~Devices() = default;
  /// Every device here.
  virtual std::vector<device::Facts> list() = 0;
  /// `unavailable` names what is there; `invalid` for what is no address.
  virtual Result<std::unique_ptr<device::Device>> open(const std::string& address) = 0;
  /// By which races on a device with these facts are timed. Lives as long as this.
  virtual Clock& clock(const device::Facts& facts) = 0;
  /// The program that launches on a simulated device compute from now on; the instance outlives the races.
  virtual void attach(const program::Instance&) {}
};
/// Called once for each record, job and verification; from any thread.
using MakeDevices = std::function<std::unique_ptr<Devices>()>;

/// Thread safe; it keeps no device open between two calls. Costs: work is seconds of base's compilation, gate
/// and first launch by the race's clock; seconds is the most that the job takes, the measured check and the
/// race's budget; record bytes are those of the race's buffers on the device. A record's cap limits what each
/// race allocates there.
std::unique_ptr<shard::Executor> make_executor(MakeDevices devices);

/// For the list of all executors.
shard::ExecutorKind kind(MakeDevices devices);

}  // namespace furlong::campaign
