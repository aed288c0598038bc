#include "furlong/stats/heat_order.h"

#include "furlong/base/random.h"

namespace furlong::stats {

std::vector<std::size_t> heat_order(std::span<const std::size_t> survivors, std::uint64_t heat,
                                    std::uint64_t seed) {
  std::vector<std::size_t> order{0, 0};
  for (const std::size_t v : survivors)
    if (v != 0) order.push_back(v);
  std::uint64_t mixed = seed;
  Random random(splitmix64(mixed) ^ (heat * 0x9E3779B97F4A7C15ull));
  random.shuffle(std::span(order));
  return order;
}

}  // namespace furlong::stats
