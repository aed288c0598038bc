#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "furlong/device/device.h"
#include "furlong/device/host/internal/buffer.h"
#include "furlong/device/host/internal/compiler.h"
#include "furlong/device/host/internal/cpu.h"
#include "furlong/device/host/internal/module.h"
#include "furlong/device/host/internal/pool.h"

namespace furlong::device::host {

/// The CPU as a device. launch() runs the grid to its end before it returns, so finish() has nothing to do.
class HostDevice : public Device {
 public:
  HostDevice(Facts facts, Compiler compiler, std::string cpu_identity, int threads);

  const Facts& facts() const override { return facts_; }
  Result<std::shared_ptr<Module>> compile(const CompileRequest& request, std::stop_token stop) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status launch(const Launch& launch) override;
  Status finish() override { return {}; }
  Result<std::vector<double>> time(const TimeRequest& request) override;
  MemoryInUse memory() const override;
  void set_memory_limit(std::uint64_t bytes) override { accounting_->limit = bytes; }
  Telemetry telemetry() override;
  int compile_threads() const override { return pool_.threads(); }

 private:
  /// A launch that has been checked: what is left is to run it.
  struct Ready {
    const furlong_entry* entry = nullptr;
    ArgumentList arguments;
    std::array<std::uint64_t, 3> grid{};
    furlong_block block{};  // all but the place and the scratch memory
    std::uint64_t blocks = 0;
  };
  Result<Ready> prepare(const Launch& launch) const;
  Status run(const Ready& ready);

  Facts facts_;
  Compiler compiler_;
  std::string cpu_identity_;
  std::shared_ptr<Accounting> accounting_ = std::make_shared<Accounting>();
  EnergyCounter energy_{"/sys/class/powercap"};
  Pool pool_;
  std::vector<std::vector<std::uint8_t>> scratch_;  // dynamic shared bytes, one a thread
};

}  // namespace furlong::device::host
