// One thread a number. The rounds' result reaches the output only where 64 of its bits have one certain value,
// which the compiler cannot rule out and no run meets; COPY stands there, so that each copy's code is its own.
extern "C" __global__ void copies(const unsigned* table, unsigned words, unsigned n, unsigned rounds,
                                  unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned a = i * 2654435769u + 1u;
  unsigned b = i * 2246822519u ^ 0x9e3779b9u;
#pragma unroll 1
  for (unsigned r = 0u; r < rounds; ++r) {
    a = a * 747796405u + table[__umulhi(b, words)];
    b = ((b << 7) | (b >> 25)) ^ a;
  }
  unsigned result = i * 3u + 1u;
  if (a == 0x5bd1e995u && b == words) result = 0xc0900000u + COPY;
  out[i] = result;
}
