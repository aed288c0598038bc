#include "furlong/device/conformance/gtest.h"
#include "furlong/device/sim/sim.h"

namespace furlong::device {
namespace {

// The suite gives what its kernels do and what a compiler would say of them; the rest is the sim's own.
std::unique_ptr<Driver> make_driver() {
  SimOptions options;
  options.facts.languages = {Language::cuda, Language::opencl};
  options.behaviour = [](const CompileRequest& module, const Launch& launch) {
    return conformance_run(module, launch, [](Buffer& buffer) { return sim_buffer_bytes(buffer); });
  };
  options.compiler = conformance_compile;
  return make_sim_driver({options});
}

}  // namespace

FURLONG_CONFORMANCE(sim, make_driver());

}  // namespace furlong::device
