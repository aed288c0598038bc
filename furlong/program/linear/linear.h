#pragma once
// Linear-algebra programs: emitters of CUDA text for the product of a Q8_0 matrix and up to 8 vectors, and of
// two matrices (docs/linear.md). Their lattices are programs/linear/*.toml.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "furlong/program/emitter.h"
#include "furlong/program/linear/chips.h"

namespace furlong::program::linear {

/// Sizes over these are refused: offsets in the texts are 64 bits, indices along one side 32.
inline constexpr std::int64_t largest_side = std::int64_t{1} << 30;
inline constexpr std::int64_t largest_batch = 8;

/// y = W x for `batch` columns x: W is n rows of k weights in Q8_0 (blocks of 32 along k, the last one filled
/// up: one f16 scale, then 32 int8; 34 bytes), x f32 [batch][k], y f32 [batch][n]. Knobs: dot, gemv_load,
/// activations, warps, rows, unroll, split_k. Problem: n, k, batch, copies, chip.
std::shared_ptr<const Emitter> make_gemv_emitter();
/// C = A B: A m x k, B k x n, C m x n, row by row; int64 that wraps modulo 2^64, or f32.
/// Knobs: precision, pipeline, tile, stages. Problem: m, n, k, operand_max, chip.
std::shared_ptr<const Emitter> make_gemm_emitter();       ///< "linear.gemm": int64
std::shared_ptr<const Emitter> make_gemm_real_emitter();  ///< "linear.gemm_real": f32

/// A knob `precision`, resolved: what is multiplied, and by which instructions.
enum class Precision { int64, int8_dp4a, int8_imma, bf16_hmma, fp16_hmma, f32 };
std::string_view precision_name(Precision precision);
/// The one map from a resolved precision to what it multiplies.
Operands operands_of(Precision precision);
struct Resolved {
  Precision precision = Precision::int64;
  std::string note;         ///< why it is not what was asked for, or what auto is; empty: as asked
  bool fallback = false;    ///< the shape or the chip cannot have what was asked for
  bool chip_lacks = false;  ///< it is the chip that cannot
};
/// By name, `auto` being the plain one (int64; f32 for real operands), whatever the chip and the shape.
/// `invalid`: no such precision, with the nearest or all of them.
Result<Precision> parse_precision(std::string_view name, bool real);
/// `auto` is always the plain one (int64; f32 for real operands), a ragged shape (a side that is no multiple
/// of 16) and a chip that lacks the instruction fall back to it. `invalid`: no such precision.
Result<Resolved> resolve_precision(std::string_view asked, bool real, const Chip& chip, std::int64_t m,
                                   std::int64_t n, std::int64_t k);

/// The largest |operand| that is exact in these operands: 127, 256, 2048, 2^24; for int8 also -128 is.
std::int64_t largest_operand(Operands operands);
/// Whether sums of k products of operands up to `operand_max` are exact: they must fit int32 (int8) or be
/// integers of f32 (bf16, fp16: 2^24). `invalid` says by how much not, and up to which k they are.
Status check_sums(Operands operands, std::int64_t operand_max, std::int64_t k);
/// `invalid` names the first value that these operands do not hold exactly.
Status check_operands(Operands operands, std::span<const std::int64_t> values);

}  // namespace furlong::program::linear
