#include "furlong/base/random.h"

#include <cmath>

namespace furlong {
namespace {

__extension__ using Wide = unsigned __int128;

// FNV-1a: labels are short and chosen by us; SplitMix64 then spreads the bits.
std::uint64_t label_bits(std::string_view label) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : label) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

std::uint64_t stream_seed(std::uint64_t seed, std::string_view label) {
  std::uint64_t state = label_bits(label);
  std::uint64_t mixed = splitmix64(state);  // so that seeds and labels that differ in one bit do not cancel
  mixed ^= splitmix64(seed);
  return splitmix64(mixed);
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view label) : Random(stream_seed(seed, label)) {}

std::uint64_t Random::below(std::uint64_t bound) {
  Wide product = static_cast<Wide>(next()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = bound == 0 ? 0 : (0 - bound) % bound;
    while (low < threshold) {
      product = static_cast<Wide>(next()) * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::int64_t Random::between(std::int64_t lo, std::int64_t hi) {
  // Unsigned, because hi - lo need not fit a signed number; a count of 0 means all 2^64 values.
  const std::uint64_t count = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + 1;
  const std::uint64_t step = count == 0 ? next() : below(count);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + step);
}

double Random::normal() {
  for (;;) {
    const double x = 2 * uniform() - 1;
    const double y = 2 * uniform() - 1;
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * std::log(square) / square);
  }
}

}  // namespace furlong
