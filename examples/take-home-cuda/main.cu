// Takes the reduction home: the kernels of examples/reduction with the knob values that `furlong race` chose on this card, from the
// header that `furlong export` wrote. Nothing of Furlong is linked. README.md has the commands.
//
// CHOICE names the row of the header to compile, as REDUCTION_<card>_N<size>: the prefix of that row's macros.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "reduction_choices.h"

#ifndef CHOICE
#error "say which row of reduction_choices.h to compile: -DCHOICE=REDUCTION_<card>_N<size>"
#endif
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define CHOSEN(knob) JOIN(CHOICE, knob)
#define PARTS CHOSEN(PARTS)
#define BLOCK CHOSEN(BLOCK)
#define WIDTH CHOSEN(WIDTH)
#define UNROLL CHOSEN(UNROLL)
#define SHUFFLE CHOSEN(SHUFFLE)
#define STREAM CHOSEN(STREAM)

#include "reduction.cu"

#define CHECK(call)                                                               \
  do {                                                                            \
    const cudaError_t status = (call);                                            \
    if (status != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));        \
      std::exit(1);                                                               \
    }                                                                             \
  } while (false)

namespace {

// Furlong's label of a card: its name with underscores for spaces.
std::string label_of(const cudaDeviceProp& card) {
  std::string label = card.name;
  for (char& c : label)
    if (c == ' ') c = '_';
  return label;
}

// Whether the values compiled in are those of the row that the header gives for this card and size.
void say_choice(const std::string& label, std::uint32_t n) {
  const reduction_choice* row = reduction_choose(label.c_str(), n);
  char compiled[200];
  std::snprintf(compiled, sizeof compiled, "-DBLOCK=%d -DWIDTH=%d -DUNROLL=%d -DSHUFFLE=%d -DSTREAM=%d", BLOCK, WIDTH, UNROLL,
                SHUFFLE, STREAM);
  std::printf("header for %s and n=%u: %s (%s)\n", label.c_str(), n, row->variant, row->problem);
  if (std::strcmp(row->card, label.c_str()) != 0) std::printf("note: this card was not raced; that row is of %s\n", row->card);
  if (std::strcmp(row->defines, compiled) != 0) std::printf("note: compiled with another row: %s, PARTS=%d\n", compiled, PARTS);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t n = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 16777216;
  if (n == 0) {
    std::fprintf(stderr, "usage: %s [N], N from 1 to 4294967295\n", argv[0]);
    return 2;
  }
  int cards = 0;
  const cudaError_t there = cudaGetDeviceCount(&cards);
  if (there != cudaSuccess || cards == 0) {
    std::fprintf(stderr, "no CUDA card here: %s\n", there == cudaSuccess ? "none found" : cudaGetErrorString(there));
    return 4;
  }
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  say_choice(label_of(card), n);

  std::vector<std::uint32_t> x(n);
  std::uint32_t seed = 1, want = 0;
  for (std::uint32_t& value : x) {
    seed = seed * 1664525u + 1013904223u;
    value = seed;
    want += value;
  }
  // The launch rule of reduction.toml.
  const unsigned eighths = card.multiProcessorCount / 8 > 1 ? card.multiProcessorCount / 8 : 1;
  const unsigned parts = PARTS * eighths;
  std::uint32_t *device_x, *partial, *sum;
  CHECK(cudaMalloc(&device_x, sizeof(std::uint32_t) * n));
  CHECK(cudaMalloc(&partial, sizeof(std::uint32_t) * parts));
  CHECK(cudaMalloc(&sum, sizeof(std::uint32_t)));
  CHECK(cudaMemcpy(device_x, x.data(), sizeof(std::uint32_t) * n, cudaMemcpyHostToDevice));

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  const int repeats = 20;
  for (int i = 0; i <= repeats; ++i) {
    if (i == 1) CHECK(cudaEventRecord(start));  // the first pass warms up
    partial_sums<<<parts, BLOCK>>>(device_x, n, partial);
    final_sum<<<1, BLOCK>>>(partial, parts, sum);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::uint32_t got = 0;
  CHECK(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
  if (got != want) {
    std::fprintf(stderr, "wrong: the card says %u, the CPU %u\n", got, want);
    return 1;
  }
  std::printf("right: %u; %.4g GB/s\n", got, 4e-6 * n * repeats / ms);
  return 0;
}
