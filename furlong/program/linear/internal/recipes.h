#pragma once
// Inputs and reference outputs of the linear-algebra programs, on the host; they share no code with the
// texts.

#include <memory>

#include "furlong/program/program.h"

namespace furlong::program::linear {

/// Inputs "weights" (Q8_0 blocks) and "x"; the product in double. Rows of extremes and of denormal scales
/// stand among the random ones, blocks of zeros and of denormal numbers in x, and what lies beyond k in a
/// row's last block is not 0.
std::shared_ptr<const Recipe> make_gemv_recipe();
/// Inputs "a" and "b" up to operand_max; the product modulo 2^64.
std::shared_ptr<const Recipe> make_gemm_recipe();
/// Inputs "a" and "b" in f32; the product in double.
std::shared_ptr<const Recipe> make_gemm_real_recipe();

}  // namespace furlong::program::linear
