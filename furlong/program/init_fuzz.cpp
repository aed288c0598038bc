// `furlong init` on anything, in each language: an error, or a file that parses (init_program reads it back
// itself).
#include <cstdint>
#include <cstdlib>

#include "furlong/program/init.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  for (const std::string_view name : {"k.cu", "k.cl", "k.cpp"}) {
    const auto first = furlong::program::init_program(source, name);
    if (first && (first->text.empty() || first->kernels.empty())) std::abort();
    if (!first && first.error().code() == furlong::Code::internal) std::abort();
  }
  return 0;
}
