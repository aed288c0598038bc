// The plain sum. A reference takes all of the program's arguments, in their order.
extern "C" void reduction_reference(const furlong_block&, const uint32_t* x, uint32_t n, uint32_t, uint32_t*,
                                    uint32_t* sum) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < n; ++i) total += x[i];
  *sum = total;
}
