// The reader of .npy files on anything. What it accepts, written again, must read the same.
#include <cstdint>
#include <cstdlib>

#include "furlong/program/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace furlong;
  using namespace furlong::program;
  const auto file = parse_npy(ByteView(data, size));
  if (!file) {
    if (file.error().code() == Code::internal) std::abort();
    return 0;
  }
  const auto again = write_npy(*file->type, file->shape, file->bytes);
  if (!again) std::abort();
  const auto same = parse_npy(*again);
  if (!same || same->type != file->type || same->shape != file->shape || same->bytes != file->bytes)
    std::abort();
  return 0;
}
