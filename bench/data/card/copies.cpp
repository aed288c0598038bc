// As copies.cu.
#include <stdint.h>

extern "C" void copies(const furlong_block& block, const uint32_t* table, uint32_t words, uint32_t n,
                       uint32_t rounds, uint32_t* out) {
  const uint64_t first = block.x * block.threads_x;
  const uint64_t end = first + block.threads_x < n ? first + block.threads_x : n;
  for (uint64_t t = first; t < end; ++t) {
    const uint32_t i = static_cast<uint32_t>(t);
    uint32_t a = i * 2654435769u + 1u;
    uint32_t b = i * 2246822519u ^ 0x9e3779b9u;
    for (uint32_t r = 0; r < rounds; ++r) {
      a = a * 747796405u + table[(static_cast<uint64_t>(b) * words) >> 32];
      b = ((b << 7) | (b >> 25)) ^ a;
    }
    uint32_t result = i * 3u + 1u;
    if (a == 0x5bd1e995u && b == words) result = 0xc0900000u + COPY;
    out[i] = result;
  }
}
