// Any text: numbers that stand in it, or nothing.
#include <cstdlib>

#include "furlong/device/ptxas_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto facts = furlong::device::parse_ptxas_log({reinterpret_cast<const char*>(data), size});
  if (facts.registers && *facts.registers < 0) std::abort();
  // A line that names registers also settles the shared bytes.
  if (facts.registers.has_value() && !facts.shared_bytes.has_value()) std::abort();
  return 0;
}
