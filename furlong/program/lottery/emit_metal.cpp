#include <fmt/format.h>

#include "furlong/program/lottery/internal/body.h"

namespace furlong::program::lottery {

std::string emit_metal(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin) {
  std::string text = internal::origin_lines(geometry, origin, "Metal 2.2: one thread a nonce.");
  text +=
      "#define DATASET_LOAD(address) (*(address))\n"
      "\n"
      "#include <metal_stdlib>\n"
      "using namespace metal;\n"
      "\n"
      "typedef uint word;\n"
      "\n"
      "inline word rotate_left(word x, uint n) { return rotate(x, n); }\n"
      "inline word high_half(word a, word b) { return mulhi(a, b); }\n"
      "inline word finalise(word x) ";
  text += internal::finalise_body();
  text +=
      "inline word dataset_word(const device word* dataset, word r) {\n"
      "  return DATASET_LOAD(dataset + high_half(r, DATASET_WORDS));\n"
      "}\n";
  if (internal::reads_wide(program))
    text +=
        "typedef uint4 quad_of_words;\n"
        "inline quad_of_words dataset_quad(const device word* dataset, word r) {\n"
        "  return DATASET_LOAD((const device uint4*)dataset + high_half(r, DATASET_WORDS / 4u));\n"
        "}\n";
  text +=
      "\n"
      "kernel void lottery(const device word* dataset [[buffer(0)]], constant ulong& start [[buffer(1)]],\n"
      "                    constant uint& count [[buffer(2)]], constant ulong& target [[buffer(3)]],\n"
      "                    device ulong* hashes [[buffer(4)]], device atomic_uint* hits [[buffer(5)]],\n"
      "                    uint i [[thread_position_in_grid]]) {\n"
      "  if (i >= count) return;\n"
      "  const ulong nonce = start + i;\n"
      "  word low = (word)nonce;\n"
      "  word upper = (word)(nonce >> 32);\n";
  text += internal::hash_statements(program, "#pragma unroll 1\n", "  ");
  text +=
      "  const ulong hash = ((ulong)a << 32) | b;\n"
      "  hashes[i] = hash;\n"
      "  if (hash < target) atomic_fetch_or_explicit(&hits[i >> 5], 1u << (i & 31u), memory_order_relaxed);\n"
      "}\n";
  return text;
}

}  // namespace furlong::program::lottery
