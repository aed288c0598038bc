#pragma once

#include <memory>
#include <vector>

#include "furlong/device/device.h"
#include "furlong/device/opencl/internal/buffer.h"
#include "furlong/device/opencl/internal/facts.h"
#include "furlong/device/opencl/internal/module.h"

namespace furlong::device::cl {

/// One context and one in-order queue with profiling.
class ClDevice : public Device {
 public:
  static Result<std::unique_ptr<Device>> open(const Api& api, Found found);
  ~ClDevice() override;

  const Facts& facts() const override { return found_.facts; }
  Result<std::shared_ptr<Module>> compile(const CompileRequest& request, std::stop_token stop) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status launch(const Launch& launch) override;
  Status finish() override;
  Result<std::vector<double>> time(const TimeRequest& request) override;
  MemoryInUse memory() const override { return {session_->used, session_->limit}; }
  void set_memory_limit(std::uint64_t bytes) override { session_->limit = bytes; }
  Telemetry telemetry() override { return {}; }
  int compile_threads() const override { return found_.pocl ? 1 : 4; }

 private:
  /// A launch that has been checked.
  struct Ready {
    const Launch* launch = nullptr;
    const Entry* entry = nullptr;
    std::array<std::size_t, 3> global{};
    std::array<std::size_t, 3> local{};
  };
  ClDevice(Found found, std::shared_ptr<Session> session)
      : found_(std::move(found)), session_(std::move(session)) {}
  Result<Ready> prepare(const Launch& launch) const;
  Status check_shape(const Launch& launch, const Entry& entry) const;
  Status check_arguments(const Launch& launch, const Entry& entry) const;
  Status enqueue(const Ready& ready, Event* event);
  Status warm(const std::vector<Ready>& pipeline);
  Result<double> time_once(const std::vector<Ready>& pipeline, int batch);

  Found found_;
  std::shared_ptr<Session> session_;
};

}  // namespace furlong::device::cl
