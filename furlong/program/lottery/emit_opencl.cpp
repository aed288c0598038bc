#include <fmt/format.h>

#include "furlong/program/lottery/internal/body.h"

namespace furlong::program::lottery {

std::string emit_opencl(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin) {
  std::string text = internal::origin_lines(geometry, origin, "OpenCL C 1.1: one work-item a nonce.");
  text +=
      "#define DATASET_LOAD(address) (*(address))\n"
      "#ifndef GROUP\n"
      "#define GROUP 192\n"
      "#endif\n"
      "\n"
      "typedef uint word;\n"
      "\n"
      "inline word rotate_left(word x, uint n) { return rotate(x, n); }\n"
      "inline word high_half(word a, word b) { return mul_hi(a, b); }\n"
      "inline word finalise(word x) ";
  text += internal::finalise_body();
  text +=
      "inline word dataset_word(__global const word* dataset, word r) {\n"
      "  return DATASET_LOAD(dataset + high_half(r, DATASET_WORDS));\n"
      "}\n";
  if (internal::reads_wide(program))
    text +=
        "typedef uint4 quad_of_words;\n"
        "inline quad_of_words dataset_quad(__global const word* dataset, word r) {\n"
        "  return DATASET_LOAD((__global const uint4*)dataset + high_half(r, DATASET_WORDS / 4u));\n"
        "}\n";
  text +=
      "\n"
      "__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void lottery(\n"
      "    __global const word* dataset, ulong start, uint count, ulong target, __global ulong* hashes,\n"
      "    volatile __global uint* hits) {\n"
      "  const uint i = (uint)get_global_id(0);\n"
      "  if (i >= count) return;\n"
      "  const ulong nonce = start + i;\n"
      "  word low = (word)nonce;\n"
      "  word upper = (word)(nonce >> 32);\n";
  text += internal::hash_statements(program, "#pragma unroll 1\n", "  ");
  text +=
      "  const ulong hash = ((ulong)a << 32) | b;\n"
      "  hashes[i] = hash;\n"
      "  if (hash < target) atomic_or(&hits[i >> 5], 1u << (i & 31u));\n"
      "}\n";
  return text;
}

}  // namespace furlong::program::lottery
