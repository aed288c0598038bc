#include "furlong/program/lottery/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "furlong/base/random.h"

namespace furlong::program::lottery {
namespace {

/// One epoch with its dataset in memory.
struct Epoch {
  explicit Epoch(const Parameters& p)
      : parameters(p),
        geometry(*geometry_of(p)),
        program(*generate_program(p)),
        cache(p, geometry.cache_lines()) {}

  Parameters parameters;
  Geometry geometry;
  LotteryProgram program;
  Cache cache;
};

Bytes dataset_of(const Epoch& epoch) {
  Bytes data(epoch.geometry.dataset_bytes);
  EXPECT_TRUE(fill_dataset(epoch.cache, data, 2, {}));
  return data;
}

TEST(LotteryReference, LightAndFullAgree) {
  for (const std::int64_t wide : {0, 8, 32}) {
    const Epoch epoch({.epoch_seed = demonstration_seed(), .day = 5, .loads = 64, .wide = wide});
    const Bytes data = dataset_of(epoch);
    const std::uint32_t words = epoch.geometry.dataset_words();
    const auto full = reference_hashes(epoch.program, ~0ull - 99, 200, words, full_rows(data), 1);
    const auto light = reference_hashes(epoch.program, ~0ull - 99, 200, words, light_rows(epoch.cache), 3);
    EXPECT_EQ(full, light);
    EXPECT_EQ(full[100],
              reference_hash(epoch.program, 0, words, light_rows(epoch.cache)));  // past 2^64: from 0
  }
}

TEST(LotteryReference, ReadsAsManyAsTheClassSaysEachInTheDataset) {
  for (const auto& [loads, wide] : {std::pair{128, 0}, {64, 32}, {32, 32}, {32, 8}}) {
    const Epoch epoch({.epoch_seed = demonstration_seed(), .loads = loads, .wide = wide});
    const std::uint32_t words = epoch.geometry.dataset_words();
    int seen = 0, seen_wide = 0;
    (void)reference_hash(
        epoch.program, 7, words, light_rows(epoch.cache), [&](int position, int, std::uint32_t word) {
          ++seen;
          EXPECT_LT(word, words);
          const auto operation = epoch.program.instructions[static_cast<std::size_t>(position)].operation;
          if (operation != Operation::load_wide) return;
          ++seen_wide;
          EXPECT_EQ(word % 4, 0u);
        });
    EXPECT_EQ(seen, loads);
    EXPECT_EQ(seen_wide, wide);
  }
}

// Any bit of the nonce changes about half of the hash's bits.
TEST(LotteryReference, EveryNonceBitReachesTheWholeHash) {
  const Epoch epoch({.epoch_seed = demonstration_seed(), .loads = 32});
  const std::uint32_t words = epoch.geometry.dataset_words();
  const RowSource rows = light_rows(epoch.cache);
  std::array<int, 64> flips{};
  for (std::uint64_t nonce = 0; nonce < 64; ++nonce) {
    const std::uint64_t hash = reference_hash(epoch.program, nonce, words, rows);
    for (int bit = 0; bit < 64; ++bit) {
      const std::uint64_t changed = hash ^ reference_hash(epoch.program, nonce ^ (1ull << bit), words, rows);
      EXPECT_GE(std::popcount(changed), 8);  // a binomial's chance of fewer is under 1e-10
      for (int out = 0; out < 64; ++out) flips[static_cast<std::size_t>(out)] += changed >> out & 1;
    }
  }
  for (const int n : flips) EXPECT_NEAR(n, 64 * 64 / 2, 6 * 32);
}

// Nothing is dead: an instruction left out, or any of its fields changed, gives another hash.
TEST(LotteryReference, EveryInstructionMatters) {
  const Epoch epoch({.epoch_seed = demonstration_seed(), .loads = 64, .wide = 32});
  const std::uint32_t words = epoch.geometry.dataset_words();
  const RowSource rows = light_rows(epoch.cache);
  const std::uint64_t hash = reference_hash(epoch.program, 1, words, rows);
  const auto differs = [&](const LotteryProgram& program) {
    return reference_hash(program, 1, words, rows) != hash;
  };
  for (std::size_t i = 0; i < kInstructions; ++i) {
    const Operation operation = epoch.program.instructions[i].operation;
    LotteryProgram changed = epoch.program;
    changed.instructions[i].source ^= 1;
    EXPECT_TRUE(differs(changed)) << "source of " << i;
    changed = epoch.program;
    changed.instructions[i].operation =
        operation == Operation::exclusive ? Operation::add : Operation::exclusive;
    EXPECT_TRUE(differs(changed)) << "operation of " << i;
    const bool rotates = operation == Operation::rotate || operation >= Operation::load;
    changed = epoch.program;
    changed.instructions[i].rotation ^= 2;
    EXPECT_EQ(differs(changed), rotates) << "rotation of " << i;
    const bool multiplies =
        operation == Operation::multiply || operation == Operation::high || operation == Operation::load_wide;
    changed = epoch.program;
    changed.instructions[i].constant ^= 0x40000000;
    EXPECT_EQ(differs(changed), multiplies) << "constant of " << i;
  }
}

/// Chi-square of the addresses of all loads over two binnings of the word index: its top eight bits, and its
/// top and bottom four together (a register whose halves repeat has uniform top bits). As standard normal
/// deviates by Wilson and Hilferty (1931); the larger of the two.
double address_deviate(const LotteryProgram& program, std::uint32_t words, const RowSource& rows,
                       int nonces) {
  std::array<std::array<double, 256>, 2> seen{};
  double total = 0;
  for (int nonce = 0; nonce < nonces; ++nonce) {
    (void)reference_hash(program, static_cast<std::uint64_t>(nonce), words, rows,
                         [&](int, int, std::uint32_t word) {
                           const std::uint64_t top = static_cast<std::uint64_t>(word) * 256 / words;
                           ++seen[0][top];
                           ++seen[1][(top & 0xf0) | (word & 0xf)];
                           ++total;
                         });
  }
  double worst = -1e9;
  for (const auto& bins : seen) {
    double chi = 0;
    for (const double n : bins) chi += (n - total / 256) * (n - total / 256) / (total / 256);
    constexpr double freedom = 255;
    const double spread = 2 / (9 * freedom);
    worst = std::max(worst, (std::cbrt(chi / freedom) - (1 - spread)) / std::sqrt(spread));
  }
  return worst;
}

constexpr double kReject = 4.5;  // one-sided chance 3e-6 for each of about 50 fixed trials
constexpr int kNonces = 400;

TEST(LotteryAddresses, AreUniform) {
  Random random(77, "uniform addresses");
  for (int i = 0; i < 24; ++i) {
    static constexpr std::array<std::int64_t, 3> loads = {32, 64, 128};
    Parameters p{.day = i, .loads = loads[static_cast<std::size_t>(i % 3)]};
    for (auto& byte : p.epoch_seed) byte = static_cast<std::uint8_t>(random.below(256));
    const Epoch epoch(p);
    EXPECT_LT(
        address_deviate(epoch.program, epoch.geometry.dataset_words(), light_rows(epoch.cache), kNonces),
        kReject)
        << to_hex(p.epoch_seed);
  }
}

// A dataset whose size is no power of two: 65 MiB.
TEST(LotteryAddresses, AreUniformInAnOddDataset) {
  const Epoch epoch({.epoch_seed = demonstration_seed(), .dataset_mib = 65});
  EXPECT_LT(address_deviate(epoch.program, epoch.geometry.dataset_words(), light_rows(epoch.cache), kNonces),
            kReject);
}

/// The demonstration program with the instruction before its last load changed to write that load's address.
LotteryProgram planted(Operation operation, std::uint8_t rotation) {
  LotteryProgram program = *generate_program({.epoch_seed = demonstration_seed()});
  Instruction& load = program.instructions[63];
  Instruction& before = program.instructions[62];
  before = {operation, load.source, load.source, rotation, 1};
  return program;
}

TEST(LotteryAddresses, PlantedCollapsesAreRejected) {
  const Epoch epoch({.epoch_seed = demonstration_seed()});
  const std::uint32_t words = epoch.geometry.dataset_words();
  const RowSource rows = light_rows(epoch.cache);
  // x ^ x and x - x are 0; rotl(x, 16) ^ x has two equal halves: what a destination as its own source would
  // do.
  for (const LotteryProgram& bad :
       {planted(Operation::exclusive, 1), planted(Operation::subtract, 1), planted(Operation::rotate, 16)})
    EXPECT_GT(address_deviate(bad, words, rows, kNonces), 3 * kReject);
}

}  // namespace
}  // namespace furlong::program::lottery
