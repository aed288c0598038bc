// y = a x + y
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256  // threads of a block
#endif
#define UNROLL 4
#define VERSION 7
/* __global__ void commented(float* x) {} */
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
saxpy(const float* __restrict__ x, float* y, const float a, int n) {
  int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
#pragma unroll UNROLL
  for (int k = 0; k < UNROLL; ++k)
    if (i < n) y[i] = a * x[i] + y[i];
}
