#pragma once
// What the four texts have in common: statements of C that mean the same in each of them. They use the names
//   uint, word                       a 32-bit unsigned integer, and a register (host: a vector of them)
//   rotate_left(x, n), high_half(a, b), finalise(x)
//   dataset_word(dataset, r), dataset_quad(dataset, r) → .x .y .z .w
// which each text's own head defines.

#include <string>

#include "furlong/program/lottery/emit.h"

namespace furlong::program::lottery::internal {

/// First comment and the dataset's size as a macro.
std::string origin_lines(const Geometry& geometry, const TextOrigin& origin, std::string_view language_note);
/// The body of `finalise`, without its signature: "{ … }".
std::string finalise_body();
/// From `word low`, `word upper` (the nonce's halves, declared before) to `word a`, `word b` (the hash's
/// halves). `loop_hint` is a line before the loop, with its newline, or empty.
std::string hash_statements(const LotteryProgram& program, std::string_view loop_hint,
                            std::string_view indent);
bool reads_wide(const LotteryProgram& program);

}  // namespace furlong::program::lottery::internal
