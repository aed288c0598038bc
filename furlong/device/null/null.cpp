#include "furlong/device/null/null.h"

namespace furlong::device {
namespace {

// What a platform that is not there answers: always `unavailable`, with what to install or do.
Error not_here() {
  return fail(Code::unavailable,
              "the null back end has no devices: it is the template for a new back end "
              "(furlong/device/null/README.md)");
}

class NullDriver : public Driver {
 public:
  std::string_view name() const override { return "null"; }
  Result<std::vector<Facts>> list() override { return not_here(); }
  Result<std::unique_ptr<Device>> open(int) override { return not_here(); }
};

}  // namespace

std::unique_ptr<Driver> make_null_driver() { return std::make_unique<NullDriver>(); }

}  // namespace furlong::device
