#pragma once
// Matrix products by shape, types and chip: the raced kernel of programs/linear, which are built into the
// library. docs/linear.md says what is computed and in which layouts.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "furlong/kernel/raced_kernel.h"
#include "furlong/program/program.h"

namespace furlong::kernel {

/// y = W x for `batch` vectors: W n rows of k weights in Q8_0, x f32 [batch][k], y f32 [batch][n].
struct GemvShape {
  std::int64_t n = 0, k = 0;
  std::int64_t batch = 1;  ///< 1 to 8
};

struct GemvOptions {
  /// How x is multiplied: "two_pass_int8" (14 bits of it), "int8" (7 bits; raced beside it), or "dequant"
  /// (the exact product in double, and nothing else).
  std::string activations = "two_pass_int8";
  std::string chip = "present";  ///< whose instructions are used: of the device's own architecture
  /// The race multiplies so many MiB of copies of the matrix in turn: no cache holds the weights when a model
  /// is decoded. 0: one copy, for matrices that stay in the cache.
  std::int64_t rotate_mib = 128;
  Options kernel;  ///< `variants`, `allow`, `base_may_win` and `serve` are set here
};

/// Arguments to bind: `weights` (u8), `x`, `y`. prepare() makes the layout of the weights. `invalid` names
/// the side, the chip or the activations that cannot be; else errors as of raced_kernel(), and where the
/// device runs no CUDA text `invalid`.
Result<RacedKernel> raced_gemv(device::Device& device, const GemvShape& shape,
                               const GemvOptions& options = {});

/// C = A B: A m x k, B k x n, C m x n, row by row.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
};

struct GemmOptions {
  /// Raced beside the plain product, which is always right: "int8_dp4a", "int8_imma", "bf16_hmma",
  /// "fp16_hmma" for i64 (exact, or refused), the latter two for f32 (the operands are rounded). Also "auto"
  /// and the plain one's own name (int64, f32), which add nothing.
  std::vector<std::string> precisions;
  /// i64: the largest |operand| that A and B will hold, 128 for -128 to 127. 0: that of `a` and `b`. One of
  /// the two is needed for a precision other than int64, which holds everything.
  std::int64_t operand_max = 0;
  /// i64: the operands where the caller has them: each is checked against the precisions and operand_max.
  /// Empty: not checked. Read during the call only.
  std::span<const std::int64_t> a, b;
  std::string chip = "present";
  Options kernel;  ///< `variants`, `allow`, `base_may_win` and `serve` are set here
};

/// Arguments to bind: `a`, `b`, `c`, all of `type`: i64 (products and sums modulo 2^64) or f32. prepare()
/// packs the operands for a precision that multiplies in less, so it goes before launch() whenever they
/// change. `invalid` names the side, chip, precision or operand that cannot be, and where k is so large that
/// sums pass what the precision adds exactly, the largest k that would do.
Result<RacedKernel> raced_gemm(device::Device& device, const GemmShape& shape, program::ElementType type,
                               const GemmOptions& options = {});

}  // namespace furlong::kernel
