// Knobs: COPIES private histograms a block, BYTES a load. PARTS blocks are called, each for a contiguous
// part.
extern "C" void clear(const furlong_block&, uint32_t* bins) {
  for (unsigned i = 0; i < 256; ++i) bins[i] = 0;
}

extern "C" void count(const furlong_block& block, const uint8_t* data, uint32_t n, uint32_t* bins) {
  uint32_t counts[COPIES][256] = {};
  const size_t begin = static_cast<size_t>(n) * block.x / block.grid_x;
  const size_t end = static_cast<size_t>(n) * (block.x + 1) / block.grid_x;
  size_t i = begin;
#if BYTES == 4
  for (; i + 4 <= end; i += 4) {
    uint32_t word;
    __builtin_memcpy(&word, data + i, 4);
    ++counts[0 % COPIES][word & 255];
    ++counts[1 % COPIES][word >> 8 & 255];
    ++counts[2 % COPIES][word >> 16 & 255];
    ++counts[3 % COPIES][word >> 24];
  }
#else
  for (; i + COPIES <= end; i += COPIES)
    for (unsigned k = 0; k < COPIES; ++k) ++counts[k][data[i + k]];
#endif
  for (; i < end; ++i) ++counts[0][data[i]];
  for (unsigned bin = 0; bin < 256; ++bin) {
    uint32_t sum = 0;
    for (unsigned k = 0; k < COPIES; ++k) sum += counts[k][bin];
    if (sum != 0) __atomic_fetch_add(bins + bin, sum, __ATOMIC_RELAXED);
  }
}
