// A small kernel with a place for a fault (faults.toml).
__device__ unsigned launches;  // of this module in this process: it lives as long as the module

#define FAULT_NONE()
// An address that no allocation holds.
#define FAULT_ILLEGAL() *reinterpret_cast<volatile unsigned*>(16ull + 4ull * i) = i
#define FAULT_ENDLESS() \
  for (volatile unsigned* p = y;; p[i] = *p + 1u) {}
// The first block's first thread counts the launches; every thread sees the count of those before.
#define FAULT_LATE()                                                             \
  const unsigned before = *reinterpret_cast<volatile unsigned*>(&launches);      \
  if (before >= late) *reinterpret_cast<volatile unsigned*>(16ull + 4ull * i) = i; \
  if (i == 0u) atomicAdd(&launches, 1u)

extern "C" __global__ void faults(const unsigned* x, unsigned n, unsigned late, unsigned* y) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  FAULT_NONE();
  unsigned a = x[i];
  for (unsigned r = 0u; r < 16u; ++r) a = a * 747796405u + (a >> 7);
  y[i] = a;
}
