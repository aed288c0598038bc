#include <fmt/format.h>

#include "furlong/program/lottery/internal/body.h"

namespace furlong::program::lottery {

std::string emit_host(const LotteryProgram& program, const Geometry& geometry, const TextOrigin& origin) {
  std::string text = internal::origin_lines(
      geometry, origin,
      "C++ for the host back end: a block of nonces a call, LANES of them side by side in vectors.");
  text +=
      "#define DATASET_LOAD(address) (*(address))\n"
      "#ifndef LANES\n"
      "#define LANES 16\n"
      "#endif\n"
      "\n"
      "#include <stdint.h>\n"
      "#pragma GCC diagnostic ignored \"-Wpsabi\"  // vectors never cross a call: all helpers are inlined\n"
      "\n"
      "typedef uint32_t word __attribute__((vector_size(4 * LANES)));\n"
      "typedef uint64_t double_word __attribute__((vector_size(8 * LANES)));\n"
      "#define INLINE static inline __attribute__((always_inline))\n"
      "\n"
      "INLINE word rotate_left(word x, uint32_t n) { return (x << n) | (x >> (32u - n)); }\n"
      "INLINE word high_half(word a, uint32_t b) {\n"
      "  return __builtin_convertvector((__builtin_convertvector(a, double_word) * b) >> 32, word);\n"
      "}\n"
      "INLINE word finalise(word x) ";
  text += internal::finalise_body();
  text +=
      "INLINE word dataset_word(const uint32_t* dataset, word r) {\n"
      "  const word index = high_half(r, DATASET_WORDS);\n"
      "  word value = {};\n"
      "  for (int l = 0; l < LANES; ++l) value[l] = DATASET_LOAD(dataset + index[l]);\n"
      "  return value;\n"
      "}\n";
  if (internal::reads_wide(program))
    text +=
        "struct quad_of_words {\n"
        "  word x, y, z, w;\n"
        "};\n"
        "struct four {\n"
        "  uint32_t x, y, z, w;\n"
        "};\n"
        "INLINE quad_of_words dataset_quad(const uint32_t* dataset, word r) {\n"
        "  const word index = high_half(r, DATASET_WORDS / 4u);\n"
        "  quad_of_words quad = {};\n"
        "  for (int l = 0; l < LANES; ++l) {\n"
        "    const four value = DATASET_LOAD(reinterpret_cast<const four*>(dataset) + index[l]);\n"
        "    quad.x[l] = value.x;\n"
        "    quad.y[l] = value.y;\n"
        "    quad.z[l] = value.z;\n"
        "    quad.w[l] = value.w;\n"
        "  }\n"
        "  return quad;\n"
        "}\n";
  text +=
      "\n"
      "extern \"C\" void lottery(const furlong_block& block, const uint32_t* dataset, uint64_t start, "
      "uint32_t count,\n"
      "                        uint64_t target, uint64_t* hashes, uint32_t* hits) {\n"
      "  typedef uint32_t uint;\n"
      "  const uint64_t first = block.x * block.threads_x;\n"
      "  const uint64_t end = first + block.threads_x < count ? first + block.threads_x : count;\n"
      "  for (uint64_t i = first; i < end; i += LANES) {\n"
      "    word low = {};\n"
      "    word upper = {};\n"
      "    for (uint l = 0; l < LANES; ++l) {\n"
      "      low[l] = static_cast<uint32_t>(start + i + l);\n"
      "      upper[l] = static_cast<uint32_t>((start + i + l) >> 32);\n"
      "    }\n";
  text += internal::hash_statements(program, "#pragma GCC unroll 1\n", "    ");
  text +=
      "    for (uint l = 0; l < LANES && i + l < end; ++l) {\n"
      "      const uint64_t hash = (static_cast<uint64_t>(a[l]) << 32) | b[l];\n"
      "      hashes[i + l] = hash;\n"
      "      if (hash < target) __atomic_fetch_or(&hits[(i + l) >> 5], 1u << ((i + l) & 31u), "
      "__ATOMIC_RELAXED);\n"
      "    }\n"
      "  }\n"
      "}\n";
  return text;
}

}  // namespace furlong::program::lottery
