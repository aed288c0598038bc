// Knob: SUMS independent sums. PARTS blocks are called, each for a contiguous part.

extern "C" void partial_sums(const furlong_block& block, const uint32_t* x, uint32_t n, uint32_t* partial) {
  const uint64_t begin = n * block.x / block.grid_x;
  const uint64_t end = n * (block.x + 1) / block.grid_x;
  uint32_t sums[SUMS] = {};
  uint64_t i = begin;
  for (; i + SUMS <= end; i += SUMS) {
    for (unsigned k = 0; k < SUMS; ++k) sums[k] += x[i + k];
  }
  for (; i < end; ++i) sums[0] += x[i];
  uint32_t total = 0;
  for (unsigned k = 0; k < SUMS; ++k) total += sums[k];
  partial[block.x] = total;
}

extern "C" void final_sum(const furlong_block&, const uint32_t* partial, uint32_t parts, uint32_t* result) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < parts; ++i) total += partial[i];
  result[0] = total;
}
