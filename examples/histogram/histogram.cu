// Knobs: BLOCK threads a block, LOAD bytes a load, PRIVATE histograms in shared memory (else straight into the result), COPIES
// of them a block, dealt to lanes or to warps (BY_WARP), MATCH equal values of a warp before they are added.
__device__ __forceinline__ void add(unsigned* bins, unsigned value, unsigned lanes) {
#if MATCH
  // The lowest of the lanes that hold this value adds for all of them.
  const unsigned same = __match_any_sync(lanes, value);
  if (threadIdx.x % 32 == (unsigned)__ffs((int)same) - 1) atomicAdd(bins + value, (unsigned)__popc(same));
#else
  atomicAdd(bins + value, 1u);
#endif
}

__device__ __forceinline__ void add_word(unsigned* bins, unsigned word, unsigned lanes) {
  add(bins, word & 255, lanes);
  add(bins, word >> 8 & 255, lanes);
  add(bins, word >> 16 & 255, lanes);
  add(bins, word >> 24, lanes);
}

// The lanes of a warp that go on, asked by all of them together.
__device__ __forceinline__ unsigned lanes_with(bool more) {
#if MATCH
  return __ballot_sync(0xffffffffu, more);
#else
  return 0;
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK) clear(unsigned* bins) {
  for (unsigned i = threadIdx.x; i < 256; i += BLOCK) bins[i] = 0;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    count(const unsigned char* __restrict__ data, unsigned n, unsigned* bins) {
#if PRIVATE
  __shared__ unsigned counts[COPIES * 256];
  for (unsigned i = threadIdx.x; i < COPIES * 256; i += BLOCK) counts[i] = 0;
  __syncthreads();
#if BY_WARP
  unsigned* mine = counts + threadIdx.x / 32 % COPIES * 256;
#else
  unsigned* mine = counts + threadIdx.x % COPIES * 256;
#endif
#else
  unsigned* mine = bins;
#endif
  const size_t step = (size_t)gridDim.x * BLOCK, block_first = (size_t)blockIdx.x * BLOCK;
  const size_t units = n / LOAD;
  // All threads of a block make equally many turns, so that a warp's lanes always meet.
  for (size_t base = block_first; base < units; base += step) {
    const size_t i = base + threadIdx.x;
    const unsigned lanes = lanes_with(i < units);
    if (i >= units) continue;
#if LOAD == 16
    const uint4 words = __ldg((const uint4*)data + i);
    add_word(mine, words.x, lanes);
    add_word(mine, words.y, lanes);
    add_word(mine, words.z, lanes);
    add_word(mine, words.w, lanes);
#elif LOAD == 4
    add_word(mine, __ldg((const unsigned*)data + i), lanes);
#else
    add(mine, __ldg(data + i), lanes);
#endif
  }
  for (size_t base = units * LOAD + block_first; base < n; base += step) {
    const size_t i = base + threadIdx.x;
    const unsigned lanes = lanes_with(i < n);
    if (i < n) add(mine, __ldg(data + i), lanes);
  }
#if PRIVATE
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += BLOCK) {
    unsigned sum = 0;
    for (unsigned k = 0; k < COPIES; ++k) sum += counts[k * 256 + i];
    if (sum != 0) atomicAdd(bins + i, sum);
  }
#endif
}
