#pragma once
// An open simulated device.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/device/sim/internal/sim_buffer.h"
#include "furlong/device/sim/internal/timing_model.h"
#include "furlong/device/sim/sim.h"

namespace furlong::device::internal {

class SimModule final : public Module {
 public:
  SimModule(CompileRequest request, KernelFacts facts)
      : request_(std::move(request)), facts_(std::move(facts)) {}
  const KernelFacts& facts() const override { return facts_; }
  const std::vector<std::string>& entries() const override { return request_.entries; }
  const CompileRequest& request() const { return request_; }

 private:
  CompileRequest request_;
  KernelFacts facts_;
};

class SimDevice final : public Device {
 public:
  /// `options` are checked and their facts complete.
  SimDevice(SimOptions options, std::shared_ptr<FakeClock> clock);

  const Facts& facts() const override { return options_.facts; }
  Result<std::shared_ptr<Module>> compile(const CompileRequest& request, std::stop_token stop) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status launch(const Launch& launch) override;
  Status finish() override;
  Result<std::vector<double>> time(const TimeRequest& request) override;
  MemoryInUse memory() const override;
  void set_memory_limit(std::uint64_t bytes) override { limit_bytes_ = bytes; }
  Telemetry telemetry() override;
  int compile_threads() const override { return options_.compile_threads; }

 private:
  using Plans = std::vector<const SimFaultPlan*>;

  std::uint64_t memory_limit() const;
  double at_s() const;
  Status check_shape(const Launch& launch) const;
  Status check_arguments(const Launch& launch) const;
  Status check_time(const TimeRequest& request) const;
  /// The faults that strike while `variant` launches `launches` more times; counts them.
  Plans strike(const std::string& variant, std::uint64_t launches);
  const SimFaultPlan* compile_fault(const std::string& variant) const;
  /// Runs the behaviour; `damage` then flips one bit of what it wrote.
  Status run(const Launch& launch, const SimFaultPlan* damage);
  void flip_bit(const Launch& launch, const SimFaultPlan& damage, const std::map<std::size_t, Bytes>& before);
  /// What a hang, a trap or a lost device answers; nothing for other faults.
  std::optional<Error> fatal(const Plans& faults, const std::string& variant);
  std::vector<double> timed(const TimeRequest& request, const std::string& variant);
  void run_for(const std::string& variant, double ms);
  double power_of(const std::string& variant) const;

  SimOptions options_;
  std::shared_ptr<SimState> state_;
  std::int64_t opened_ns_;
  TimingModel timing_;
  Random damage_random_;
  std::uint64_t limit_bytes_ = 0;
  std::multimap<std::string, const SimFaultPlan*, std::less<>> plans_;  // by variant
  std::map<std::string, std::uint64_t> launches_;                       // by variant
  std::vector<std::pair<std::string, double>> queued_;  // variant and cost of what finish() waits for
  std::optional<Error> pending_;                        // what finish() answers
  bool throttled_ = false;
  double busy_ms_ = 0, busy_j_ = 0;
  std::string last_variant_;
};

}  // namespace furlong::device::internal
