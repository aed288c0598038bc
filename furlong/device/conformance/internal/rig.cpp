#include "furlong/device/conformance/internal/rig.h"

namespace furlong::device::conformance {

Result<Rig> Rig::open(Driver& driver) {
  FURLONG_TRY(const std::vector<Facts> facts, driver.list());
  if (facts.empty()) return fail(Code::unavailable, "{} has no device here", driver.name());
  Rig rig;
  FURLONG_TRY(rig.device, driver.open(facts.front().index));
  return rig;
}

Result<Rig> Rig::open_with_module(Driver& driver) {
  FURLONG_TRY(Rig rig, open(driver));
  FURLONG_TRY(const CompileRequest request, conformance_request(rig.device->facts().languages));
  FURLONG_TRY(rig.module, rig.device->compile(request));
  return rig;
}

Launch Rig::launch(std::string entry, std::vector<Argument> arguments, std::uint64_t grid,
                   std::uint64_t block) const {
  Launch one;
  one.module = module.get();
  one.entry = std::move(entry);
  one.grid = {grid, 1, 1};
  one.block = {block, 1, 1};
  one.arguments = std::move(arguments);
  return one;
}

Status Rig::run(const Launch& one) {
  FURLONG_CHECK(device->launch(one));
  return device->finish();
}

}  // namespace furlong::device::conformance
