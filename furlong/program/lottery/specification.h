#pragma once
// What a lottery program is (docs/formats/lottery.md): instructions, constants, geometry. These plain
// structures are the only thing that the generator, the emitters, the reference interpreter and the
// dataset share; each of them follows the specification by itself.

#include <array>
#include <cstdint>
#include <vector>

#include "furlong/program/lottery/lottery.h"

namespace furlong::program::lottery {

inline constexpr int kFormat = 1;         ///< of the specification, in pack.toml under [lottery]
inline constexpr int kRegisters = 16;     ///< 32-bit each
inline constexpr int kInstructions = 64;  ///< of one iteration
inline constexpr int kIterations = 8;
inline constexpr int kRowBytes = 64;  ///< a line of the cache and a row of the dataset
inline constexpr int kRowWords = 16;
/// Word indices are 32-bit and so is the number of words, a factor of every index: one row under 16 GiB.
inline constexpr std::uint64_t kLargestDataset = (1ull << 34) - kRowBytes;

/// d is the destination, s the source, c the constant, n the rotation; all arithmetic is modulo 2^32.
enum class Operation : std::uint8_t {
  add,        ///< d = d + s
  subtract,   ///< d = d - s
  exclusive,  ///< d = d ^ s
  multiply,   ///< d = d * c + s, c odd
  rotate,     ///< d = rotl(d, n) ^ s
  high,       ///< d = d + mulhi(s, c), c >= 2^31
  load,       ///< d = rotl(d, n) ^ word[mulhi(s, words)]
  load_wide,  ///< w = quad[mulhi(s, words / 4)]; d = ((rotl(d ^ w0, n) + w1) ^ w2) * c + w3, c odd
};
inline constexpr int kArithmeticOperations = 6;

/// Every operation is a bijection of the destination for fixed other registers (source != destination),
/// so an iteration is a permutation of the 512-bit state and no entropy is lost.
struct Instruction {
  Operation operation = Operation::add;
  std::uint8_t destination = 0;
  std::uint8_t source = 0;
  std::uint8_t rotation = 1;  ///< 1 to 31
  std::uint32_t constant = 1;
};

/// One lottery program. A value type.
struct LotteryProgram {
  std::array<std::uint32_t, 6> nonce_keys{};              ///< of the nonce's four-round mix
  std::array<std::uint32_t, 2> hash_keys{};               ///< start of the final hash
  std::array<std::uint32_t, kRegisters> register_keys{};  ///< of the registers' first values
  std::array<Instruction, kInstructions> instructions{};
};

/// Sizes in bytes, whole rows.
struct Geometry {
  std::uint64_t cache_bytes = 0;
  std::uint64_t dataset_bytes = 0;
  std::uint32_t cache_lines() const { return static_cast<std::uint32_t>(cache_bytes / kRowBytes); }
  std::uint32_t dataset_rows() const { return static_cast<std::uint32_t>(dataset_bytes / kRowBytes); }
  std::uint32_t dataset_words() const { return static_cast<std::uint32_t>(dataset_bytes / 4); }
};

/// `invalid` naming the parameter and what it may be.
Status check_parameters(const Parameters& parameters);
/// The sizes by the rule of the specification. `invalid` as check_parameters.
Result<Geometry> geometry_of(const Parameters& parameters);
/// The program of an epoch, a day and a class. `invalid` as check_parameters.
Result<LotteryProgram> generate_program(const Parameters& parameters);

}  // namespace furlong::program::lottery
