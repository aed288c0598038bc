#include "furlong/device/opencl/opencl.h"

#include "furlong/device/opencl/internal/device.h"
#include "furlong/device/opencl/internal/facts.h"

namespace furlong::device {
namespace {

class OpenClDriver : public Driver {
 public:
  std::string_view name() const override { return "opencl"; }

  Result<std::vector<Facts>> list() override {
    FURLONG_TRY(const cl::Api* api, cl::load_api());
    FURLONG_TRY(const std::vector<cl::Found> found, cl::find_devices(*api));
    std::vector<Facts> facts;
    for (const cl::Found& one : found) facts.push_back(one.facts);
    return facts;
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    FURLONG_TRY(const cl::Api* api, cl::load_api());
    FURLONG_TRY(std::vector<cl::Found> found, cl::find_devices(*api));
    if (index < 0 || static_cast<std::size_t>(index) >= found.size()) {
      return fail(Code::unavailable, "there is no opencl:{}: OpenCL finds {} devices", index, found.size());
    }
    return cl::ClDevice::open(*api, std::move(found[static_cast<std::size_t>(index)]));
  }
};

}  // namespace

std::unique_ptr<Driver> make_opencl_driver() { return std::make_unique<OpenClDriver>(); }

}  // namespace furlong::device
