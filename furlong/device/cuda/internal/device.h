#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "furlong/device/cuda/internal/buffer.h"
#include "furlong/device/cuda/internal/code_cache.h"
#include "furlong/device/cuda/internal/module.h"
#include "furlong/device/cuda/internal/nvml.h"
#include "furlong/device/cuda/nvrtc.h"
#include "furlong/device/device.h"

namespace furlong::device::cuda {

class CudaDevice : public Device {
 public:
  /// `unavailable` when the card is in use or prohibited.
  /// `sensors` may be absent: telemetry is unknown then.
  static Result<std::unique_ptr<Device>> open(const Api& api, Card card, Facts facts, Nvrtc nvrtc,
                                              std::optional<NvmlCard> sensors);
  ~CudaDevice() override;

  const Facts& facts() const override { return facts_; }
  Result<std::shared_ptr<Module>> compile(const CompileRequest& request, std::stop_token stop) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status launch(const Launch& launch) override;
  Status finish() override;
  Result<std::vector<double>> time(const TimeRequest& request) override;
  MemoryInUse memory() const override { return {session_->used_bytes(), session_->limit_bytes()}; }
  void set_memory_limit(std::uint64_t bytes) override { session_->set_limit_bytes(bytes); }
  /// What this device shares with its buffers and modules.
  std::shared_ptr<Session> session() const { return session_; }
  Telemetry telemetry() override { return sensors_ ? sensors_->telemetry() : Telemetry(); }
  std::optional<double> occupancy(const Launch& launch) override;
  int compile_threads() const override { return 4; }

 private:
  /// A launch that has been checked, with its arguments where the driver reads them.
  struct Ready {
    const Launch* launch = nullptr;
    const Entry* entry = nullptr;
    std::vector<Address> addresses;  ///< by argument; of buffers
    std::vector<void*> arguments;
  };
  CudaDevice(Facts facts, Nvrtc nvrtc, std::optional<NvmlCard> sensors, std::shared_ptr<Session> session);
  Result<Ready> prepare(const Launch& launch) const;
  Status check_shape(const Launch& launch, const Entry& entry) const;
  Status check_arguments(const Launch& launch, const Entry& entry) const;
  Status enqueue(const Ready& ready);
  Status enqueue_batch(const std::vector<Ready>& pipeline, int batch);
  Result<std::vector<double>> time_windows(const std::vector<Ready>& pipeline, const TimeRequest& request,
                                           GraphExec graph);

  Facts facts_;
  Nvrtc nvrtc_;
  std::optional<NvmlCard> sensors_;
  CodeCache cache_;
  std::shared_ptr<Session> session_;
};

}  // namespace furlong::device::cuda
