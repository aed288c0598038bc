// As faults.cu.
#include <stdint.h>

[[maybe_unused]] static uint32_t launches;

#define FAULT_NONE()
#define FAULT_ILLEGAL() *reinterpret_cast<volatile uint32_t*>(16ull + 4ull * i) = i
#define FAULT_ENDLESS()                             \
  for (volatile uint32_t* p = y;; p[i] = *p + 1u) { \
  }
#define FAULT_LATE()                                                          \
  if (i == 0u && __atomic_fetch_add(&launches, 1u, __ATOMIC_RELAXED) >= late) \
  *reinterpret_cast<volatile uint32_t*>(16ull + 4ull * i) = i

extern "C" void faults(const furlong_block& block, const uint32_t* x, uint32_t n, uint32_t late,
                       uint32_t* y) {
  (void)late;
  for (uint64_t t = 0; t < BLOCK; ++t) {
    const uint32_t i = static_cast<uint32_t>(block.x * BLOCK + t);
    if (i >= n) return;
    FAULT_NONE();
    uint32_t a = x[i];
    for (uint32_t r = 0; r < 16u; ++r) a = a * 747796405u + (a >> 7);
    y[i] = a;
  }
}
