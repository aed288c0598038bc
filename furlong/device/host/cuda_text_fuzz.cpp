// Any text: scanned or `invalid`; lines are kept.
#include <algorithm>
#include <cstdlib>

#include "furlong/device/host/internal/cuda_shim.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  furlong::device::CompileRequest request;
  request.source_name = "fuzz.cu";
  request.source.assign(reinterpret_cast<const char*>(data), size);
  const auto text = furlong::device::host::scan_cuda_text(request);
  if (!text) {
    if (text.error().code() != furlong::Code::invalid) std::abort();
    return 0;
  }
  const auto lines = [](const std::string& all) { return std::count(all.begin(), all.end(), '\n'); };
  if (lines(text->source) != lines(request.source)) std::abort();
  return 0;
}
