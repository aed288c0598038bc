#pragma once
// The back ends that an application has: filled by the application (only it names concrete back ends),
// used by everything else through addresses such as "opencl:0".

#include <memory>
#include <string>
#include <vector>

#include "furlong/device/device.h"

namespace furlong::device {

class Registry {
 public:
  void add(std::unique_ptr<Driver> driver);
  const std::vector<std::unique_ptr<Driver>>& drivers() const { return drivers_; }
  Driver* find(std::string_view backend) const;

  struct Listed {
    std::string backend;
    Result<std::vector<Facts>> devices;
  };
  std::vector<Listed> list() const;

  /// "opencl:0", "host" (= host:0), or "" / "auto": the first card that opens, else the first device (the
  /// CPU), of the first back end in this order of preference: cuda, metal, opencl, host (sim and null only by
  /// name). Errors: `invalid` for a malformed address, `unavailable` with what is there for an absent one;
  /// for a name that people use for cards
  /// ("hip", "rocm", "metal", "vulkan", "level-zero", "cpu", …) it says which back end serves those.
  Result<std::unique_ptr<Device>> open(std::string_view address) const;

 private:
  Result<std::unique_ptr<Device>> open_best() const;

  std::vector<std::unique_ptr<Driver>> drivers_;
};

}  // namespace furlong::device
