#pragma once
// The chips that linear-algebra texts are made for: one table, each row with its source. A chip need not be
// present to emit and compile for it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/lattice/expression.h"

namespace furlong::program::linear {

/// What a resolved precision multiplies with. The gate and the limits of operands read only this.
enum class Operands { int64, int8, bf16, fp16, f32 };

/// What a chip's matrix units and dot products take.
struct Instructions {
  bool dp4a = false;      ///< 4 int8 products into int32
  bool int8_mma = false;  ///< warp-wide int8 matrix products
  bool fp16_mma = false;
  bool bf16_mma = false;
  bool async_copy = false;   ///< memory to shared memory beside the computation
  bool warp_groups = false;  ///< products by 128 threads straight from shared memory (Hopper alone)
  bool fp8_mma = false;
  bool nvfp4_mma = false;
};

struct Chip {
  std::string name;                      ///< "rtx3060"
  std::string label;                     ///< as NVIDIA's driver names the card, spaces as underscores
  int sm = 0;                            ///< compute capability, 86 for 8.6
  std::string arch;                      ///< "sm_86"
  std::uint64_t shared_bytes = 0;        ///< a block, static
  std::uint64_t shared_optin_bytes = 0;  ///< a block, when asked for
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  double memory_rate = 0;  ///< bytes a second, by the datasheet
  Instructions has;
  std::string source;  ///< where the row is from
};

/// Without a card, so that every host emits the same text.
inline constexpr std::string_view default_chip = "rtx3060";

/// The table, oldest architecture first.
std::span<const Chip> chips();
/// `invalid` names the nearest.
Result<const Chip*> find_chip(std::string_view name);
/// The chip that a program is emitted for: `asked` by name, or for "present" the row of the device's facts
/// (of several with its architecture the one nearest in memory), and without a card (no facts of one)
/// default_chip. A device whose architecture has no row is given one from its facts, with the name of its
/// architecture. `invalid`: an unknown name, or a chip of another architecture than the device that the
/// text is to run on.
Result<Chip> resolve_chip(std::string_view asked, const lattice::Lookup& facts);
/// What chips of this compute capability can do.
Instructions instructions_of(int sm);

}  // namespace furlong::program::linear
