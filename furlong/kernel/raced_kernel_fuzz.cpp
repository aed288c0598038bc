// Kept choices: no input may crash the reader, and what is read is written and read alike.
#include <cstdlib>

#include "furlong/kernel/internal/choice.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace furlong::kernel;
  const auto choice = parse_choice({reinterpret_cast<const char*>(data), size}, "input");
  if (!choice) return 0;
  const auto again = parse_choice(print_choice(*choice), "again");
  if (!again || !(*again == *choice)) std::abort();
  return 0;
}
