#pragma once
// Pieces of CUDA text from which the emitters put a program together. All of it but the instructions is plain
// CUDA that also runs through the host shim (furlong/device/host); the tests put shuffles in their place.

#include <string_view>

namespace furlong::program::linear {

/// Inline PTX behind plain functions: by the oldest chip that has them.
/// Around them, with what all chips have.
extern const std::string_view instructions_begin_text, instructions_end_text;
extern const std::string_view
    instructions_sm80_text;  ///< matrix instructions of sm_80 on, asynchronous copies
extern const std::string_view instructions_sm75_text;  ///< the same by what sm_75 has; no asynchronous copies

/// Beside those of sm_80: waiting for and ordering the warp groups of sm_90a.
extern const std::string_view instructions_sm90a_text;

extern const std::string_view gemv_common_text;
extern const std::string_view gemv_rows_layout_text;
extern const std::string_view gemv_rows_words_text;
extern const std::string_view gemv_rows_int_text, gemv_rows_float_text;
extern const std::string_view gemv_rows_begin_text, gemv_rows_end_text;
extern const std::string_view gemv_rows_int_body_text, gemv_rows_float_body_text;
extern const std::string_view gemv_tiles_text;
extern const std::string_view gemv_sum_text;

extern const std::string_view gemm_common_text;
extern const std::string_view gemm_plain_text;
extern const std::string_view gemm_pack_text;
extern const std::string_view gemm_dp4a_text;
extern const std::string_view gemm_warp_text;
extern const std::string_view gemm_tiles_text;  ///< before the next two
extern const std::string_view gemm_block_text;
extern const std::string_view gemm_group_text;

}  // namespace furlong::program::linear
