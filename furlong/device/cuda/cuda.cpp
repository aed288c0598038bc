#include "furlong/device/cuda/cuda.h"

#include <map>
#include <optional>

#include "furlong/device/cuda/internal/device.h"
#include "furlong/device/cuda/internal/driver_api.h"
#include "furlong/device/cuda/internal/facts.h"
#include "furlong/device/cuda/internal/findings.h"
#include "furlong/device/cuda/internal/nvml.h"
#include "furlong/device/cuda/internal/nvrtc_choice.h"
#include "furlong/device/cuda/nvrtc.h"

namespace furlong::device {
namespace {

class CudaDriver : public Driver {
 public:
  std::string_view name() const override { return "cuda"; }

  Result<std::vector<Facts>> list() override {
    FURLONG_TRY(const cuda::Api* api, started());
    int count = 0;
    if (const cuda::Status32 code = api->card_count(&count); code != cuda::kSuccess)
      return cuda::error_of(*api, code, "counting the cards");
    std::vector<Facts> list;
    for (int index = 0; index < count; ++index) {
      cuda::Card card = 0;
      if (const cuda::Status32 code = api->card(&card, index); code != cuda::kSuccess)
        return cuda::error_of(*api, code, fmt::format("looking at cuda:{}", index));
      list.push_back(cuda::card_facts(*api, card, index));
      if (const Nvml* management = sensors(); management != nullptr && !management->driver_version().empty())
        list.back().driver = management->driver_version();
      const Result<Nvrtc> nvrtc = compiler(*api, list.back().silicon.arch);
      if (nvrtc) list.back().compiler = nvrtc->version();
    }
    return list;
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    FURLONG_TRY(std::vector<Facts> listed, list());
    if (index < 0 || static_cast<std::size_t>(index) >= listed.size()) {
      return fail(Code::unavailable, "there is no cuda:{}: the driver finds {} cards", index, listed.size());
    }
    FURLONG_TRY(const cuda::Api* api, started());
    FURLONG_TRY(const Nvrtc nvrtc, compiler(*api, listed[static_cast<std::size_t>(index)].silicon.arch));
    cuda::Card card = 0;
    if (const cuda::Status32 code = api->card(&card, index); code != cuda::kSuccess)
      return cuda::error_of(*api, code, fmt::format("opening cuda:{}", index));
    Facts facts = std::move(listed[static_cast<std::size_t>(index)]);
    std::optional<NvmlCard> read;
    if (const Nvml* management = sensors()) {
      if (auto found = management->card(facts.uuid, cuda::bus_id(*api, card))) read = *std::move(found);
    }
    return cuda::CudaDevice::open(*api, card, std::move(facts), nvrtc, std::move(read));
  }

  std::vector<Finding> findings() override { return cuda::findings_of(cuda::look_at_platform()); }

 private:
  static Result<const cuda::Api*> started() {
    FURLONG_TRY(const cuda::Api* api, cuda::load_driver());
    if (api->started == cuda::kSuccess) return api;
    const std::string_view advice = cuda::start_advice(api->started);
    return fail(Code::unavailable, "NVIDIA's driver does not start: {}{}{}", api->name_of(api->started),
                advice.empty() ? "" : ": ", advice);
  }
  // Opening every installed NVRTC takes longer than a compile, so the choice is kept.
  Result<Nvrtc> compiler(const cuda::Api& api, const std::string& arch) {
    if (const auto kept = compilers_.find(arch); kept != compilers_.end()) return kept->second;
    FURLONG_TRY(Nvrtc chosen, choose_nvrtc(api.version, arch));
    return compilers_.emplace(arch, std::move(chosen)).first->second;
  }
  // Without it there is no telemetry; findings() says why.
  const Nvml* sensors() {
    if (!nvml_) {
      if (auto opened = Nvml::open()) nvml_ = *std::move(opened);
    }
    return nvml_ ? &*nvml_ : nullptr;
  }

  std::map<std::string, Nvrtc> compilers_;  // by architecture
  std::optional<Nvml> nvml_;
};

}  // namespace

std::unique_ptr<Driver> make_cuda_driver() { return std::make_unique<CudaDriver>(); }

}  // namespace furlong::device
