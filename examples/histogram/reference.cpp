extern "C" void histogram_reference(const furlong_block&, const uint8_t* data, uint32_t n, uint32_t* bins) {
  for (unsigned i = 0; i < 256; ++i) bins[i] = 0;
  for (uint32_t i = 0; i < n; ++i) ++bins[data[i]];
}
