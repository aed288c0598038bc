// A profile that is read is printed to the same bytes, but for its version. The check sum is set right first,
// since else no change would come further than to it.

#include <cstdlib>
#include <string>

#include "furlong/shard/profile.h"

using namespace furlong;
using namespace furlong::shard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(as_text({data, size}));
  static_cast<void>(parse_profile(bytes, "fuzz.fprof"));
  constexpr std::size_t kSum = sizeof(Digest::bytes), kSection = 4 + 8 + kSum;
  if (bytes.size() >= kSection) {
    const Digest sum = blake2b_256(std::string_view(bytes).substr(0, bytes.size() - kSection));
    bytes.replace(bytes.size() - kSum, kSum, as_text(sum.bytes));
  }
  const auto profile = parse_profile(bytes, "fuzz.fprof");
  if (!profile) return 0;
  const auto again = parse_profile(print_profile(*profile), "fuzz.fprof");
  if (!again || !(*again == *profile)) std::abort();
  return 0;
}
