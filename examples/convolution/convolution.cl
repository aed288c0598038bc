// FILTER, the edge, is a constant here; the argument `filter` is for the reference.
// Knobs: BX × BY work-items a group, WX × WY results a work-item, STAGED through local memory, UNROLL the filter's row.
#define TILE_X (BX * WX)
#define TILE_Y (BY * WY)
#define STAGE_X (TILE_X + FILTER - 1)
#define STAGE_Y (TILE_Y + FILTER - 1)
#if UNROLL
#define UNROLL_ROW __attribute__((opencl_unroll_hint(FILTER)))
#else
#define UNROLL_ROW __attribute__((opencl_unroll_hint(1)))
#endif

__kernel void convolution(__global const float* image, __global const float* weights, __global float* out, uint width,
                          uint height, uint filter) {
  const uint image_width = width + FILTER - 1, image_height = height + FILTER - 1;
  const uint left = get_group_id(0) * TILE_X, top = get_group_id(1) * TILE_Y;
#if STAGED
  __local float stage[STAGE_Y][STAGE_X];
  for (uint y = get_local_id(1); y < STAGE_Y; y += BY)
    for (uint x = get_local_id(0); x < STAGE_X; x += BX)
      if (top + y < image_height && left + x < image_width) stage[y][x] = image[(top + y) * image_width + left + x];
  barrier(CLK_LOCAL_MEM_FENCE);
#define PIXEL(x, y) stage[y][x]
#else
#define PIXEL(x, y) image[min((uint)(top + (y)), image_height - 1) * image_width + min((uint)(left + (x)), image_width - 1)]
#endif
  float sums[WY][WX];
  for (uint j = 0; j < WY; ++j)
    for (uint i = 0; i < WX; ++i) sums[j][i] = 0.0f;
  for (uint fy = 0; fy < FILTER; ++fy) {
    UNROLL_ROW
    for (uint fx = 0; fx < FILTER; ++fx) {
      const float weight = weights[fy * FILTER + fx];
      for (uint j = 0; j < WY; ++j)
        for (uint i = 0; i < WX; ++i)
          sums[j][i] += weight * PIXEL(get_local_id(0) + i * BX + fx, get_local_id(1) + j * BY + fy);
    }
  }
  for (uint j = 0; j < WY; ++j)
    for (uint i = 0; i < WX; ++i) {
      const uint x = left + get_local_id(0) + i * BX, y = top + get_local_id(1) + j * BY;
      if (x < width && y < height) out[y * width + x] = sums[j][i];
    }
}
