#pragma once
// The texts of a lottery program in four languages. The emitters follow docs/formats/lottery.md and share
// nothing with the reference interpreter but the instructions themselves.
//
// Every text holds these anchors exactly once, for textual rewrites (programs/lottery/lottery.toml):
//   the head of the iteration loop     "for (uint iteration = 0u; iteration < 8u; ++iteration) {"
//   the dataset load's expression      "(*(address))", the body of the macro DATASET_LOAD
//   the kernel's signature             up to and with "lottery("
// and compiles and runs unmodified as base.

#include <string>

#include "furlong/program/lottery/specification.h"

namespace furlong::program::lottery {

/// What a text's first lines say about where it comes from.
struct TextOrigin {
  std::string epoch_seed_hex;
  std::int64_t day = 0;
  std::int64_t loads = 0, wide = 0;
};

std::string emit_cuda(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin);
std::string emit_opencl(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin);
std::string emit_metal(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin);
/// For the host back end: many nonces a call, LANES of them side by side in vectors.
std::string emit_host(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin);

}  // namespace furlong::program::lottery
