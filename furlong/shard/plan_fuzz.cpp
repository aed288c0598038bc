// A plan that is read is printed to the same bytes. The check sum is set right first, since else no change
// would come further than to it.

#include <cstdlib>
#include <string>

#include "furlong/base/bytes.h"
#include "furlong/base/hash.h"
#include "furlong/shard/plan.h"

using namespace furlong;
using namespace furlong::shard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(as_text({data, size}));
  static_cast<void>(parse_plan(bytes, "fuzz.fsp"));
  constexpr std::size_t kSum = sizeof(Digest::bytes), kSection = 4 + 8 + kSum;
  if (bytes.size() >= kSection) {
    const Digest sum = blake2b_256(std::string_view(bytes).substr(0, bytes.size() - kSection));
    bytes.replace(bytes.size() - kSum, kSum, as_text(sum.bytes));
  }
  const auto plan = parse_plan(bytes, "fuzz.fsp");
  if (!plan) return 0;
  if (print_plan(*plan) != bytes) std::abort();
  const auto rows = parse_costs_csv(costs_csv(*plan, {}), "fuzz.csv");
  if (!rows || !rows->empty()) std::abort();
  return 0;
}
