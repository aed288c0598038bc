#include <cstdlib>
#include <optional>

#include "furlong/base/os/file.h"
#include "furlong/device/sim/internal/sim_device.h"

namespace furlong::device {
namespace {

// Every member left at its default gets a value that a mid-range card could have.
Facts complete_facts(const SimOptions& options, int index) {
  Facts facts = options.facts;
  const auto text = [](std::string& member, std::string_view value) {
    if (member.empty()) member = value;
  };
  facts.backend = "sim";
  facts.index = index;
  facts.virtual_time = true;
  text(facts.label, "Sim_Card");
  text(facts.silicon.vendor, "Furlong");
  text(facts.silicon.arch, "sim_1");
  if (facts.silicon.multiprocessors == 0) facts.silicon.multiprocessors = 64;
  if (facts.silicon.memory_bytes == 0) facts.silicon.memory_bytes = options.memory_bytes;
  text(facts.driver, "1.0");
  text(facts.compiler, "sim 1.0");
  text(facts.uuid, fmt::format("SIM-{:04}", index));
  if (facts.languages.empty())
    facts.languages = {Language::host, Language::opencl, Language::cuda, Language::metal};
  if (facts.max_threads_per_block <= 1) facts.max_threads_per_block = 1024;
  if (facts.max_block == std::array<std::uint64_t, 3>{1, 1, 1}) facts.max_block = {1024, 1024, 64};
  if (facts.max_shared_bytes == 0) facts.max_shared_bytes = 48u << 10;
  if (facts.max_buffer_bytes == 0) facts.max_buffer_bytes = options.memory_bytes;
  if (facts.warp == 1 && !facts.runs_on_host_cpu) facts.warp = 32;
  return facts;
}

class SimDriver final : public Driver {
 public:
  SimDriver(std::vector<SimOptions> devices, std::shared_ptr<FakeClock> clock)
      : devices_(std::move(devices)), clock_(clock ? std::move(clock) : std::make_shared<FakeClock>()) {
    for (std::size_t i = 0; i < devices_.size() && !error_; ++i)
      if (Status ok = check_sim_options(devices_[i]); !ok)
        error_ = Error(ok.error()).with(fmt::format("sim:{}", i));
    for (std::size_t i = 0; i < devices_.size(); ++i)
      devices_[i].facts = complete_facts(devices_[i], static_cast<int>(i));
  }
  explicit SimDriver(Error error) : clock_(std::make_shared<FakeClock>()), error_(std::move(error)) {}

  std::string_view name() const override { return "sim"; }

  Result<std::vector<Facts>> list() override {
    if (error_) return *error_;
    std::vector<Facts> facts;
    for (const SimOptions& options : devices_) facts.push_back(options.facts);
    return facts;
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    if (error_) return *error_;
    if (index < 0 || static_cast<std::size_t>(index) >= devices_.size())
      return fail(Code::unavailable, "sim:{} is not there: {} simulated devices are", index, devices_.size());
    return std::make_unique<internal::SimDevice>(devices_[static_cast<std::size_t>(index)], clock_);
  }

 private:
  std::vector<SimOptions> devices_;
  std::shared_ptr<FakeClock> clock_;
  std::optional<Error> error_;
};

Result<std::vector<SimOptions>> options_of_environment() {
  const char* const path = std::getenv("FURLONG_SIM");
  if (path == nullptr || *path == '\0') return std::vector<SimOptions>(1);
  FURLONG_TRY(const std::string text, system_files().read(path, 64u << 20));
  return parse_sim_options(text, path);
}

}  // namespace

std::unique_ptr<Driver> make_sim_driver(std::vector<SimOptions> devices, std::shared_ptr<FakeClock> clock) {
  return std::make_unique<SimDriver>(std::move(devices), std::move(clock));
}

std::unique_ptr<Driver> make_sim_driver() {
  auto options = options_of_environment();
  if (!options) return std::make_unique<SimDriver>(Error(options.error()).with("reading $FURLONG_SIM"));
  return make_sim_driver(*std::move(options));
}

}  // namespace furlong::device
