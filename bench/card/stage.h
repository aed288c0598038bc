#pragma once
// What every section of the card's bench stands on: the device, programs bound to it, one race in this
// process.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness.h"
#include "furlong/base/json_fwd.h"
#include "furlong/device/registry.h"
#include "furlong/program/instance.h"
#include "furlong/program/pack.h"
#include "furlong/race/race.h"

namespace furlong::bench {

/// A device that remembers what it compiled, for back ends without a compile cache of their own: hundreds of
/// races of one program then compile it once. As thread safe as the device below, which must outlive it.
class RememberingDevice : public device::Device {
 public:
  explicit RememberingDevice(device::Device& below) : below_(below) {}
  const device::Facts& facts() const override { return below_.facts(); }
  Result<std::shared_ptr<device::Module>> compile(const device::CompileRequest& request,
                                                  std::stop_token stop) override;
  Result<std::unique_ptr<device::Buffer>> allocate(std::size_t bytes) override {
    return below_.allocate(bytes);
  }
  Status launch(const device::Launch& launch) override { return below_.launch(launch); }
  Status finish() override { return below_.finish(); }
  Result<std::vector<double>> time(const device::TimeRequest& request) override {
    return below_.time(request);
  }
  device::MemoryInUse memory() const override { return below_.memory(); }
  void set_memory_limit(std::uint64_t bytes) override { below_.set_memory_limit(bytes); }
  device::Telemetry telemetry() override { return below_.telemetry(); }
  std::optional<double> occupancy(const device::Launch& launch) override { return below_.occupancy(launch); }
  int compile_threads() const override { return below_.compile_threads(); }

 private:
  device::Device& below_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<device::Module>> modules_;
};

/// The device under test. Lives as long as the bench.
class Stage {
 public:
  /// `unavailable` when there is no such device, with what is there.
  static Result<std::unique_ptr<Stage>> open(const std::string& address);

  device::Device& device() { return *device_; }
  /// The same device, compiling each text once.
  device::Device& remembering() { return *remembering_; }
  bool on_card() const { return !device_->facts().runs_on_host_cpu && !device_->facts().virtual_time; }

  /// A program in the language of the device with the most to show there.
  Result<program::Instance> bind(
      std::shared_ptr<const program::Program> program,
      const std::vector<std::pair<std::string, lattice::Value>>& problem = {}) const;
  /// A lottery of an epoch numbered `epoch`, of a class, with a dataset of `mib` (0: the small geometry).
  Result<program::Instance> lottery(std::int64_t epoch, std::int64_t loads, std::int64_t wide,
                                    std::int64_t mib) const;
  /// A program file of the repository, by its path from the root: looked for from here and from above the
  /// bench's own file.
  Result<program::Instance> file(
      const std::string& path, const std::vector<std::pair<std::string, lattice::Value>>& problem = {}) const;

  /// One race in this process, without trial or quarantine.
  Result<race::Outcome> race(const program::Instance& instance, const std::vector<lattice::Point>& points,
                             const race::Options& options, race::Kept* kept, device::Device* on = nullptr);

 private:
  device::Registry registry_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Device> host_;
  std::unique_ptr<RememberingDevice> remembering_;
};

/// A file of the repository by its path from the root, looked for in the working folder and those above the
/// running program. `unavailable` says where it was looked for.
Result<std::filesystem::path> repository_file(const std::string& path);

/// The middle and a high quantile (nearest rank) of values; NaN of none.
double median(std::vector<double> values);
double quantile(std::vector<double> values, double share);

/// The time that a section has. Nothing is begun for which, going by the longest turn so far, none is left.
class Allowance {
 public:
  /// 0: no limit.
  explicit Allowance(double limit_s);
  /// To be asked before every turn; the first is always begun.
  bool room();
  double left_s() const;

 private:
  double limit_s_, start_ms_, turn_ms_, longest_ms_ = 0;
  bool begun_ = false;
};

/// What all races of the bench have in common: its budget and pause, no samples kept.
Result<race::Options> race_options(const Bench& bench);

/// An option of the bench as a number or a list. `invalid` names it.
Result<double> number_option(const Bench& bench, const std::string& name);
Result<std::vector<std::string>> list_option(const Bench& bench, const std::string& name);

/// One line of progress on standard error, with the seconds since the start.
void say(std::string_view text);

/// Details beyond rows of numbers, for --details FILE: one entry a section.
Json& details();

}  // namespace furlong::bench
