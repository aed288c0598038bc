// FILTER, the edge, is a constant here; the last argument is for the reference.
// Knobs: COLUMNS × ROWS results a block; UNROLL: the filter's row as straight-line code.
extern "C" void convolution(const furlong_block& block, const float* __restrict image,
                            const float* __restrict weights, float* __restrict out, uint32_t width,
                            uint32_t height, uint32_t) {
  const size_t image_width = width + FILTER - 1;
  const uint32_t left = static_cast<uint32_t>(block.x) * COLUMNS, top = static_cast<uint32_t>(block.y) * ROWS;
  const uint32_t columns = left + COLUMNS < width ? COLUMNS : width - left;
  const uint32_t last = top + ROWS < height ? top + ROWS : height;
  for (uint32_t y = top; y < last; ++y) {
    float* row = out + static_cast<size_t>(y) * width + left;
    for (uint32_t x = 0; x < columns; ++x) row[x] = 0.0f;
    for (unsigned fy = 0; fy < FILTER; ++fy) {
      const float* pixels = image + (y + fy) * image_width + left;
#if UNROLL
      for (uint32_t x = 0; x < columns; ++x) {
        float sum = row[x];
#pragma GCC unroll 16
        for (unsigned fx = 0; fx < FILTER; ++fx) sum += weights[fy * FILTER + fx] * pixels[x + fx];
        row[x] = sum;
      }
#else
      for (unsigned fx = 0; fx < FILTER; ++fx) {
        const float weight = weights[fy * FILTER + fx];
        for (uint32_t x = 0; x < columns; ++x) row[x] += weight * pixels[x + fx];
      }
#endif
    }
  }
}
