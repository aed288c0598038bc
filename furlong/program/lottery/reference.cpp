#include "furlong/program/lottery/reference.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

namespace furlong::program::lottery {
namespace {

using Registers = std::array<std::uint32_t, kRegisters>;

std::uint32_t high_half(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}

/// MurmurHash3's 32-bit finaliser (Appleby 2011).
std::uint32_t finalise(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return x;
}

Registers first_registers(const LotteryProgram& program, std::uint64_t nonce) {
  const auto& key = program.nonce_keys;
  auto low = static_cast<std::uint32_t>(nonce) ^ key[0];
  auto high = static_cast<std::uint32_t>(nonce >> 32) ^ key[1];
  for (std::size_t round = 0; round < 4; ++round) {
    if (round % 2 == 0)
      high ^= finalise(low + key[2 + round]);
    else
      low ^= finalise(high + key[2 + round]);
  }
  Registers r{};
  for (std::size_t k = 0; k < kRegisters; ++k)
    r[k] = finalise((k % 2 == 0 ? low : high) + program.register_keys[k]);
  return r;
}

std::uint64_t final_hash(const LotteryProgram& program, const Registers& r) {
  std::uint32_t a = program.hash_keys[0];
  std::uint32_t b = program.hash_keys[1];
  for (const std::uint32_t value : r) {
    a = std::rotl((a ^ value) * 0x9e3779b1u, 15);
    b = std::rotl(b + value, 11) * 0x85ebca77u;
  }
  a = finalise(a + b);
  b = finalise(b ^ a);
  a = finalise(a + b);
  return (static_cast<std::uint64_t>(a) << 32) | b;
}

}  // namespace

RowSource light_rows(const Cache& cache) {
  return [&cache](std::uint32_t index) { return cache.dataset_row(index); };
}

RowSource full_rows(std::span<const std::uint8_t> dataset) {
  return [dataset](std::uint32_t index) {
    Row row;
    std::memcpy(row.data(), dataset.data() + static_cast<std::size_t>(index) * kRowBytes, kRowBytes);
    return row;
  };
}

std::uint64_t reference_hash(const LotteryProgram& program, std::uint64_t nonce, std::uint32_t dataset_words,
                             const RowSource& rows, const LoadObserver& observe) {
  Registers r = first_registers(program, nonce);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (int position = 0; position < kInstructions; ++position) {
      const Instruction& step = program.instructions[static_cast<std::size_t>(position)];
      std::uint32_t& d = r[step.destination];
      const std::uint32_t s = r[step.source];
      switch (step.operation) {
        case Operation::add:
          d += s;
          break;
        case Operation::subtract:
          d -= s;
          break;
        case Operation::exclusive:
          d ^= s;
          break;
        case Operation::multiply:
          d = d * step.constant + s;
          break;
        case Operation::rotate:
          d = std::rotl(d, step.rotation) ^ s;
          break;
        case Operation::high:
          d += high_half(s, step.constant);
          break;
        case Operation::load: {
          const std::uint32_t word = high_half(s, dataset_words);
          if (observe) observe(position, iteration, word);
          d = std::rotl(d, step.rotation) ^ rows(word / kRowWords)[word % kRowWords];
          break;
        }
        case Operation::load_wide: {
          const std::uint32_t word = high_half(s, dataset_words / 4) * 4;
          if (observe) observe(position, iteration, word);
          const Row row = rows(word / kRowWords);
          const std::uint32_t* w = row.data() + word % kRowWords;
          d = std::rotl(d ^ w[0], step.rotation) + w[1];
          d = (d ^ w[2]) * step.constant + w[3];
          break;
        }
      }
    }
  }
  return final_hash(program, r);
}

std::vector<std::uint64_t> reference_hashes(const LotteryProgram& program, std::uint64_t start,
                                            std::uint32_t count, std::uint32_t dataset_words,
                                            const RowSource& rows, int threads) {
  std::vector<std::uint64_t> hashes(count);
  std::atomic<std::uint32_t> next{0};
  constexpr std::uint32_t chunk = 32;
  const auto work = [&] {
    for (;;) {
      const std::uint32_t first = next.fetch_add(chunk, std::memory_order_relaxed);
      if (first >= count) return;
      for (std::uint32_t i = first; i < count && i < first + chunk; ++i)
        hashes[i] = reference_hash(program, start + i, dataset_words, rows);
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  return hashes;
}

}  // namespace furlong::program::lottery
