// As copies.cu.
__kernel void copies(__global const uint* table, uint words, uint n, uint rounds, __global uint* out) {
  const uint i = (uint)get_global_id(0);
  if (i >= n) return;
  uint a = i * 2654435769u + 1u;
  uint b = i * 2246822519u ^ 0x9e3779b9u;
  for (uint r = 0u; r < rounds; ++r) {
    a = a * 747796405u + table[mul_hi(b, words)];
    b = rotate(b, 7u) ^ a;
  }
  uint result = i * 3u + 1u;
  if (a == 0x5bd1e995u && b == words) result = 0xc0900000u + COPY;
  out[i] = result;
}
