#include <cmath>
static void helper(float* x) { *x = 1; }
extern "C" void scale(const furlong_block& block, const double* x, double* y, int64_t n) {
  for (unsigned t = 0; t < block.threads_x; ++t) {
    const auto i = block.x * block.threads_x + t;
    if (i < n) y[i] = 2 * x[i];
  }
}
