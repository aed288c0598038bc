// Knobs: BLOCK threads a block, WIDTH elements a load, UNROLL loads in flight a thread, SHUFFLE within a warp (else a tree in
// shared memory), STREAM past the caches. Blocks stride over the whole input together.
#if WIDTH == 4
typedef uint4 Elements;
__device__ __forceinline__ unsigned sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }
#else
typedef unsigned Elements;
__device__ __forceinline__ unsigned sum_of(unsigned v) { return v; }
#endif

__device__ __forceinline__ Elements load(const Elements* p) {
#if STREAM
  return __ldcs(p);
#else
  return __ldg(p);
#endif
}

// Adds the threads' sums; the result is in thread 0.
__device__ __forceinline__ unsigned block_sum(unsigned sum) {
#if SHUFFLE
  __shared__ unsigned warps[BLOCK / 32];
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  sum = threadIdx.x < BLOCK / 32 ? warps[threadIdx.x] : 0;
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  return sum;
#else
  __shared__ unsigned scratch[BLOCK];
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (threadIdx.x < half_size) scratch[threadIdx.x] += scratch[threadIdx.x + half_size];
    __syncthreads();
  }
  return scratch[0];
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    partial_sums(const unsigned* __restrict__ x, unsigned n, unsigned* __restrict__ partial) {
  const size_t step = (size_t)gridDim.x * BLOCK, first = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  const Elements* elements = (const Elements*)x;
  const size_t count = n / WIDTH;
  unsigned sum = 0;
  size_t i = first;
  for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
    Elements loaded[UNROLL];
#pragma unroll
    for (unsigned k = 0; k < UNROLL; ++k) loaded[k] = load(elements + i + k * step);
#pragma unroll
    for (unsigned k = 0; k < UNROLL; ++k) sum += sum_of(loaded[k]);
  }
  for (; i < count; i += step) sum += sum_of(load(elements + i));
  for (i = count * WIDTH + first; i < n; i += step) sum += x[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    final_sum(const unsigned* __restrict__ partial, unsigned parts, unsigned* __restrict__ result) {
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < parts; i += BLOCK) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}
