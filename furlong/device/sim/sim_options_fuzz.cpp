// Options that the parser accepts must make devices that answer a launch and a timing without a crash.

#include <cstdlib>

#include "furlong/device/sim/sim.h"

using namespace furlong;
using namespace furlong::device;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto options = parse_sim_options(as_text({data, size}), "fuzz.json");
  if (!options) return 0;
  for (std::size_t i = 0; i < options->size() && i < 4; ++i) {
    auto driver = make_sim_driver({(*options)[i]});
    auto device = driver->open(0);
    if (!device) std::abort();  // parsed options are checked options
    CompileRequest request;
    request.language = (*device)->facts().languages.at(0);
    request.name = "u2";
    request.entries = {"k"};
    const auto module = (*device)->compile(request);
    const auto buffer = (*device)->allocate(256);
    if (!module || !buffer) continue;
    Launch launch;
    launch.module = module->get();
    launch.entry = "k";
    launch.arguments = {BufferArgument{buffer->get(), 0}};
    const bool launched = (*device)->launch(launch) && (*device)->finish();
    const auto times = (*device)->time({{&launch, 1}, 3, 2, nullptr});
    if (launched && times)
      for (const double ms : *times)
        if (!(ms > 0)) std::abort();
    (*device)->telemetry();
  }
  return 0;
}
