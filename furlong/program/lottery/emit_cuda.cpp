#include <fmt/format.h>

#include "furlong/program/lottery/internal/body.h"

namespace furlong::program::lottery {

std::string emit_cuda(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin) {
  std::string text = internal::origin_lines(
      geometry, origin,
      "CUDA: one thread a nonce. `dataset` is not __restrict__, so that the load path is as it is written.");
  text +=
      "#define DATASET_LOAD(address) (*(address))\n"
      "\n"
      "typedef unsigned int uint;\n"
      "typedef unsigned int word;\n"
      "typedef unsigned long long ulong64;\n"
      "\n"
      "__device__ __forceinline__ word rotate_left(word x, uint n) { return (x << n) | (x >> (32u - n)); }\n"
      "__device__ __forceinline__ word high_half(word a, word b) { return __umulhi(a, b); }\n"
      "__device__ __forceinline__ word finalise(word x) ";
  text += internal::finalise_body();
  text +=
      "__device__ __forceinline__ word dataset_word(const word* dataset, word r) {\n"
      "  return DATASET_LOAD(dataset + high_half(r, DATASET_WORDS));\n"
      "}\n";
  if (internal::reads_wide(program))
    text +=
        "typedef uint4 quad_of_words;\n"
        "__device__ __forceinline__ quad_of_words dataset_quad(const word* dataset, word r) {\n"
        "  return DATASET_LOAD(reinterpret_cast<const uint4*>(dataset) + high_half(r, DATASET_WORDS / 4u));\n"
        "}\n";
  text +=
      "\n"
      "extern \"C\" __global__ void lottery(const word* dataset, ulong64 start, uint count, ulong64 target,\n"
      "                                   ulong64* hashes, uint* hits) {\n"
      "  const uint i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i >= count) return;\n"
      "  const ulong64 nonce = start + i;\n"
      "  word low = static_cast<word>(nonce);\n"
      "  word upper = static_cast<word>(nonce >> 32);\n";
  text += internal::hash_statements(program, "#pragma unroll 1\n", "  ");
  text +=
      "  const ulong64 hash = (static_cast<ulong64>(a) << 32) | b;\n"
      "  hashes[i] = hash;\n"
      "  if (hash < target) atomicOr(&hits[i >> 5], 1u << (i & 31u));\n"
      "}\n";
  return text;
}

}  // namespace furlong::program::lottery
