#include "furlong/device/cuda/cuda.h"

#include <array>

#include "furlong/base/os/library.h"

namespace furlong::device {
namespace {

Error why_not() {
  static const std::array<std::string, 1> names{"libcuda.so.1"};
  const Result<Library> driver = Library::open_any(names);
  if (!driver) {
    return fail(Code::unavailable, "NVIDIA's driver is not here ({}): install it to use a card through CUDA",
                driver.error().message());
  }
  return fail(
      Code::unavailable,
      "the CUDA back end is not built yet; NVIDIA cards are reached through OpenCL (opencl:0) meanwhile");
}

class CudaDriver : public Driver {
 public:
  std::string_view name() const override { return "cuda"; }
  Result<std::vector<Facts>> list() override { return why_not(); }
  Result<std::unique_ptr<Device>> open(int) override { return why_not(); }
};

}  // namespace

std::unique_ptr<Driver> make_cuda_driver() { return std::make_unique<CudaDriver>(); }

}  // namespace furlong::device
