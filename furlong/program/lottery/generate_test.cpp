#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "furlong/base/random.h"
#include "furlong/program/lottery/specification.h"

namespace furlong::program::lottery {
namespace {

bool is_load(const Instruction& x) {
  return x.operation == Operation::load || x.operation == Operation::load_wide;
}

Parameters random_parameters(Random& random) {
  static constexpr std::array<std::int64_t, 3> loads = {32, 64, 128};
  static constexpr std::array<std::int64_t, 3> wide = {0, 8, 32};
  Parameters p;
  for (auto& byte : p.epoch_seed) byte = static_cast<std::uint8_t>(random.below(256));
  p.day = random.between(0, 5000);
  p.loads = loads[random.below(3)];
  p.wide = wide[random.below(3)];
  return p;
}

/// Every program of the tests below, with its parameters.
void for_random_programs(int count,
                         const std::function<void(const Parameters&, const LotteryProgram&)>& look) {
  Random random(20260301, "lottery programs");
  for (int i = 0; i < count; ++i) {
    const Parameters p = random_parameters(random);
    const auto program = generate_program(p);
    ASSERT_TRUE(program) << program.error().text();
    look(p, *program);
  }
}

TEST(LotteryProgram, HasItsLoadsEvenlySpreadAndItsWideOnes) {
  for_random_programs(200, [](const Parameters& p, const LotteryProgram& program) {
    const auto loads = static_cast<std::size_t>(p.loads / kIterations);
    const std::size_t stride = kInstructions / loads;
    std::int64_t wide = 0;
    for (std::size_t i = 0; i < kInstructions; ++i) {
      EXPECT_EQ(is_load(program.instructions[i]), i % stride == stride - 1) << i;
      wide += program.instructions[i].operation == Operation::load_wide ? kIterations : 0;
    }
    EXPECT_EQ(wide, p.wide);
  });
}

TEST(LotteryProgram, DealsTheArithmeticEvenly) {
  for_random_programs(100, [](const Parameters& p, const LotteryProgram& program) {
    std::array<int, kArithmeticOperations> seen{};
    for (const Instruction& x : program.instructions)
      if (!is_load(x)) ++seen[static_cast<std::size_t>(x.operation)];
    const int deck = static_cast<int>(kInstructions - p.loads / kIterations);
    for (const int n : seen) {
      EXPECT_GE(n, deck / kArithmeticOperations);
      EXPECT_LE(n, deck / kArithmeticOperations + 1);
    }
  });
}

TEST(LotteryProgram, KeepsEntropy) {
  for_random_programs(200, [](const Parameters&, const LotteryProgram& program) {
    for (const Instruction& x : program.instructions) {
      EXPECT_NE(x.source, x.destination);  // else the instruction is no bijection
      EXPECT_LT(x.source, kRegisters);
      EXPECT_LT(x.destination, kRegisters);
      EXPECT_GE(x.rotation, 1);
      EXPECT_LE(x.rotation, 31);
      if (x.operation == Operation::high) {
        EXPECT_GE(x.constant, 0x80000000u);
      } else {
        EXPECT_EQ(x.constant & 1, 1u);
      }
    }
  });
}

TEST(LotteryProgram, WritesEveryRegisterOnceInSixteenInstructions) {
  for_random_programs(100, [](const Parameters&, const LotteryProgram& program) {
    for (std::size_t i = 0; i < kInstructions; i += kRegisters) {
      std::set<int> written;
      for (std::size_t k = 0; k < kRegisters; ++k) written.insert(program.instructions[i + k].destination);
      EXPECT_EQ(written.size(), static_cast<std::size_t>(kRegisters));
    }
  });
}

// Two loads from one unchanged register would read the same place, and a compiler would do only one of them.
TEST(LotteryProgram, NoTwoLoadsShareAnAddress) {
  for_random_programs(200, [](const Parameters&, const LotteryProgram& program) {
    std::array<bool, kRegisters> fresh{};  // written since it was last an address
    fresh.fill(true);
    for (int turn = 0; turn < 2; ++turn) {
      for (const Instruction& x : program.instructions) {
        if (is_load(x)) {
          EXPECT_TRUE(fresh[x.source]);
          fresh[x.source] = false;
        }
        fresh[x.destination] = true;
      }
    }
  });
}

TEST(LotteryProgram, NoInstructionCancelsTheOneBefore) {
  for_random_programs(200, [](const Parameters&, const LotteryProgram& program) {
    std::array<int, kRegisters> last{};
    last.fill(-1);
    for (const Instruction& x : program.instructions) {
      if (!is_load(x)) {
        EXPECT_NE(x.source, last[x.destination]);
      }
      last[x.destination] = x.source;
    }
  });
}

// Which first registers each register depends on, one bit each, after some iterations.
TEST(LotteryProgram, EveryRegisterDependsOnAllAfterTwoIterations) {
  for_random_programs(300, [](const Parameters& p, const LotteryProgram& program) {
    std::array<std::uint32_t, kRegisters> depends{};
    for (std::size_t k = 0; k < kRegisters; ++k) depends[k] = 1u << k;
    for (int turn = 0; turn < 2; ++turn)
      for (const Instruction& x : program.instructions) depends[x.destination] |= depends[x.source];
    for (const std::uint32_t set : depends)
      EXPECT_EQ(set, 0xffffu) << "seed " << to_hex(p.epoch_seed) << " day " << p.day;
  });
}

TEST(LotteryProgram, EveryParameterMatters) {
  const Parameters standard{.epoch_seed = demonstration_seed()};
  const auto keys = [](const Parameters& p) { return generate_program(p)->register_keys; };
  EXPECT_EQ(keys(standard), keys(standard));
  Parameters other = standard;
  other.epoch_seed[31] ^= 1;
  EXPECT_NE(keys(other), keys(standard));
  other = standard, other.day = 1;
  EXPECT_NE(keys(other), keys(standard));
  other = standard, other.loads = 64;
  EXPECT_NE(keys(other), keys(standard));
  other = standard, other.wide = 8;
  EXPECT_NE(keys(other), keys(standard));
  other = standard, other.geometry = "default";  // the size is no part of the program
  EXPECT_EQ(keys(other), keys(standard));
}

TEST(LotteryParameters, AreRefusedByName) {
  const auto message = [](Parameters p) {
    const auto geometry = geometry_of(p);
    EXPECT_FALSE(geometry);
    EXPECT_EQ(geometry.error().code(), Code::invalid);
    EXPECT_FALSE(generate_program(p));
    return geometry ? std::string() : geometry.error().text();
  };
  EXPECT_NE(message({.day = -1}).find("day is -1"), std::string::npos);
  EXPECT_NE(message({.geometry = "huge"}).find("geometry is 'huge'"), std::string::npos);
  EXPECT_NE(message({.dataset_mib = 63}).find("dataset-mib is 63"), std::string::npos);
  EXPECT_NE(message({.dataset_mib = 8193}).find("64 to 8192"), std::string::npos);
  EXPECT_NE(message({.loads = 127}).find("loads is 127"), std::string::npos);
  EXPECT_NE(message({.wide = 16}).find("wide is 16"), std::string::npos);
  EXPECT_NE(message({.day = 1920, .geometry = "default"}).find("after day 1919"), std::string::npos);
}

TEST(LotteryGeometry, FollowsTheRule) {
  constexpr std::uint64_t mib = 1u << 20;
  const auto sizes = [](Parameters p) {
    const Geometry g = *geometry_of(p);
    EXPECT_EQ(g.dataset_bytes % kRowBytes, 0u);
    EXPECT_EQ(g.dataset_words(), g.dataset_bytes / 4);
    return std::pair(g.cache_bytes, g.dataset_bytes);
  };
  EXPECT_EQ(sizes({}), std::pair(mib, 16 * mib));
  EXPECT_EQ(sizes({.day = 77}), std::pair(mib, 16 * mib));
  EXPECT_EQ(sizes({.geometry = "default"}), std::pair(16 * mib, 1024 * mib));
  EXPECT_EQ(sizes({.day = 3, .geometry = "default"}), std::pair(16 * mib, 1048 * mib));
  EXPECT_EQ(sizes({.day = 1919, .geometry = "default"}), std::pair(16 * mib, 16376 * mib));
  EXPECT_EQ(sizes({.day = 3, .geometry = "default", .dataset_mib = 64}), std::pair(16 * mib, 64 * mib));
  EXPECT_EQ(sizes({.day = 100000, .geometry = "default", .dataset_mib = 8192}),
            std::pair(16 * mib, 8192 * mib));
  EXPECT_EQ(sizes({.geometry = "small", .dataset_mib = 65}), std::pair(mib, 65 * mib));
}

}  // namespace
}  // namespace furlong::program::lottery
