// Any bytes: a hash or nothing, the same each time, and never a read past the end.
#include <cstdlib>

#include "furlong/device/host/internal/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const furlong::ByteView object(data, size);
  const std::string hash = furlong::device::host::elf_code_hash(object);
  if (!hash.empty() && hash.size() != 32) std::abort();
  if (hash != furlong::device::host::elf_code_hash(object)) std::abort();
  return 0;
}
