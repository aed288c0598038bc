// Any bytes: an entry or an error, never a read past the end; also where the digest holds, which no mutation
// finds by itself. What is read prints as the same bytes.
#include <cstdlib>

#include "furlong/base/hash.h"
#include "furlong/device/cuda/internal/code_cache.h"

namespace {

void check(std::string_view bytes) {
  const std::string key(64, 'a');
  const auto cubin = furlong::device::parse_code_entry(key, bytes);
  if (cubin && furlong::device::print_code_entry(key, *cubin) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = furlong::as_text({data, size});
  check(bytes);
  constexpr std::size_t seal_bytes = 32;
  std::string sealed(bytes.substr(0, size - std::min(size, seal_bytes)));
  const furlong::Digest seal = furlong::blake2b_256(sealed);
  sealed += furlong::as_text(seal.bytes);
  check(sealed);
  return 0;
}
