#pragma once
// Seeded random numbers with the same sequence on every machine and compiler (the standard
// library's distributions do not promise that). Every random choice in Furlong comes from here,
// with a seed that is printed or recorded.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace furlong {

/// SplitMix64 step: mixes a counter into 64 well-distributed bits (Steele, Lea, Flood 2014).
constexpr std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// xoshiro256** 1.0 (Blackman, Vigna 2018), seeded by SplitMix64. Not for secrets. Not thread safe.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) {
    for (auto& word : s_) word = splitmix64(seed);
  }
  /// An independent stream: the same seed and label give the same stream.
  Random(std::uint64_t seed, std::string_view label);

  constexpr std::uint64_t next() {
    const std::uint64_t result = rotl(s_[1] * 5, 7) * 9;
    const std::uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotl(s_[3], 45);
    return result;
  }
  /// Uniform in [0, bound), without bias (Lemire 2019); bound >= 1.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [lo, hi], both ends included.
  std::int64_t between(std::int64_t lo, std::int64_t hi);
  /// Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Standard normal (Marsaglia's polar method; no cached second value, so the state is the seed's alone).
  double normal();

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static constexpr std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<std::uint64_t, 4> s_{};
};

}  // namespace furlong
