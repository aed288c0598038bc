// FILTER, the edge, is a constant here; the argument `filter` is for the reference.
// Knobs: BX × BY threads a block, WX × WY results a thread, STAGED through shared memory, PAD elements after a staged row,
// SHARE the weights in shared memory, UNROLL the filter's row.
#define TILE_X (BX * WX)
#define TILE_Y (BY * WY)
#define STAGE_X (TILE_X + FILTER - 1)
#define STAGE_Y (TILE_Y + FILTER - 1)

extern "C" __global__ void __launch_bounds__(BX * BY)
    convolution(const float* __restrict__ image, const float* __restrict__ weights, float* __restrict__ out,
                unsigned width, unsigned height, unsigned filter) {
  const unsigned image_width = width + FILTER - 1;
  const unsigned left = blockIdx.x * TILE_X, top = blockIdx.y * TILE_Y;
#if SHARE
  __shared__ float shared_weights[FILTER * FILTER];
  for (unsigned i = threadIdx.y * BX + threadIdx.x; i < FILTER * FILTER; i += BX * BY) shared_weights[i] = weights[i];
#define WEIGHT(i) shared_weights[i]
#else
#define WEIGHT(i) __ldg(weights + (i))
#endif
#if STAGED
  __shared__ float stage[STAGE_Y][STAGE_X + PAD];
  const unsigned image_height = height + FILTER - 1;
  for (unsigned y = threadIdx.y; y < STAGE_Y; y += BY)
    for (unsigned x = threadIdx.x; x < STAGE_X; x += BX)
      if (top + y < image_height && left + x < image_width)
        stage[y][x] = image[(size_t)(top + y) * image_width + left + x];
#endif
#if SHARE || STAGED
  __syncthreads();
#endif
  // Where the pixels under each result begin; results beyond the edge read the last one's and are not written.
  const float* rows[WY];
  unsigned columns[WX];
#if STAGED
  const unsigned row_step = STAGE_X + PAD;
#pragma unroll
  for (unsigned j = 0; j < WY; ++j) rows[j] = stage[threadIdx.y + j * BY];
#pragma unroll
  for (unsigned i = 0; i < WX; ++i) columns[i] = threadIdx.x + i * BX;
#else
  const unsigned row_step = image_width;
#pragma unroll
  for (unsigned j = 0; j < WY; ++j) rows[j] = image + (size_t)min(top + threadIdx.y + j * BY, height - 1) * image_width;
#pragma unroll
  for (unsigned i = 0; i < WX; ++i) columns[i] = min(left + threadIdx.x + i * BX, width - 1);
#endif
  float sums[WY][WX] = {};
#pragma unroll 1
  for (unsigned fy = 0; fy < FILTER; ++fy) {
#if UNROLL
#pragma unroll
#else
#pragma unroll 1
#endif
    for (unsigned fx = 0; fx < FILTER; ++fx) {
      const float weight = WEIGHT(fy * FILTER + fx);
#pragma unroll
      for (unsigned j = 0; j < WY; ++j)
#pragma unroll
        for (unsigned i = 0; i < WX; ++i) sums[j][i] += weight * rows[j][columns[i] + fx];
    }
#pragma unroll
    for (unsigned j = 0; j < WY; ++j) rows[j] += row_step;
  }
#pragma unroll
  for (unsigned j = 0; j < WY; ++j)
#pragma unroll
    for (unsigned i = 0; i < WX; ++i) {
      const unsigned x = left + threadIdx.x + i * BX, y = top + threadIdx.y + j * BY;
      if (x < width && y < height) out[(size_t)y * width + x] = sums[j][i];
    }
}
