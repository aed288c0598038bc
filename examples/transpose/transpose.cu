// Knobs: TILE edge of a tile, WORK rows a thread, STAGED through shared memory, PAD elements after a tile's row, SWIZZLE the
// columns of a tile by its row instead, STREAM the stores past the caches. TILE × TILE / WORK threads a block.
#define STEP (TILE / WORK)

__device__ __forceinline__ void store(unsigned* p, unsigned value) {
#if STREAM
  __stcs(p, value);
#else
  *p = value;
#endif
}

extern "C" __global__ void __launch_bounds__(TILE * STEP)
    transpose(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned rows, unsigned columns) {
  const unsigned lane = threadIdx.x, tile_column = blockIdx.x * TILE, tile_row = blockIdx.y * TILE;
#if STAGED
  __shared__ unsigned tile[TILE][TILE + PAD];
#if SWIZZLE
#define PLACE(row, column) tile[row][(column) ^ (row)]
#else
#define PLACE(row, column) tile[row][column]
#endif
#pragma unroll
  for (unsigned j = 0; j < WORK; ++j) {
    const unsigned k = threadIdx.y + j * STEP, row = tile_row + k, column = tile_column + lane;
    if (row < rows && column < columns) PLACE(k, lane) = in[(size_t)row * columns + column];
  }
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < WORK; ++j) {
    const unsigned k = threadIdx.y + j * STEP, row = tile_row + lane, column = tile_column + k;
    if (row < rows && column < columns) store(out + (size_t)column * rows + row, PLACE(lane, k));
  }
#else
#pragma unroll
  for (unsigned j = 0; j < WORK; ++j) {
    const unsigned row = tile_row + threadIdx.y + j * STEP, column = tile_column + lane;
    if (row < rows && column < columns) store(out + (size_t)column * rows + row, in[(size_t)row * columns + column]);
  }
#endif
}
