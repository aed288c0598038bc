#include "apps/furlong/campaign_devices.h"

#include "apps/furlong/backends.h"
#include "apps/furlong/simulation.h"
#include "furlong/device/registry.h"

namespace furlong::app {
namespace {

class AppDevices : public campaign::Devices {
 public:
  AppDevices() { add_backends(registry_); }

  std::vector<device::Facts> list() override {
    std::vector<device::Facts> all;
    for (const auto& row : registry_.list())
      if (row.devices) all.insert(all.end(), row.devices->begin(), row.devices->end());
    return all;
  }
  Result<std::unique_ptr<device::Device>> open(const std::string& address) override {
    return address.starts_with("sim:") ? simulation_.open(address) : registry_.open(address);
  }
  Clock& clock(const device::Facts& facts) override {
    return facts.virtual_time ? simulation_.clock() : system_clock();
  }
  void attach(const program::Instance& instance) override { simulation_.attach(instance); }

 private:
  device::Registry registry_;
  Simulation simulation_;
};

}  // namespace

std::unique_ptr<campaign::Devices> campaign_devices() { return std::make_unique<AppDevices>(); }

}  // namespace furlong::app
