// What the kernels must give, computed on the host from their description and not from their text.
#include <bit>
#include <cmath>

#include "furlong/device/internal/ceiling_kernels.h"

namespace furlong::device::internal {
namespace {

std::uint32_t high_half(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} * b) >> 32);
}

/// Of `count` words from word `first` on.
std::uint32_t sum_of(std::uint64_t first, unsigned count) {
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += mix(static_cast<std::uint32_t>(first + i));
  return sum;
}

std::uint32_t streamed(const Run& run, std::uint64_t element) {
  const auto block = static_cast<std::uint64_t>(run.way.block);
  const std::uint64_t rows = std::uint64_t{run.rounds} * static_cast<std::uint64_t>(run.way.unroll);
  if (run.way.strips) return sum_of(4 * element * rows, static_cast<unsigned>(4 * rows));
  const std::uint64_t first = element / block * block * rows + element % block;
  std::uint32_t sum = 0;
  for (std::uint64_t row = 0; row < rows; ++row) sum += sum_of(4 * (first + row * block), 4);
  return sum;
}

std::uint32_t loaded(const Run& run, std::uint64_t element) {
  const bool lines = run.kind == CeilingKind::random128;
  const unsigned width = run.kind == CeilingKind::random4 ? 1 : 4;  // words of one load of one element
  const auto count = static_cast<std::uint32_t>(run.bytes / (lines ? 128u : 4u * width));
  const std::uint32_t loads = run.rounds * static_cast<std::uint32_t>(run.way.unroll);
  const auto next = static_cast<std::uint32_t>(lines ? element / 8 : element) * loads;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < loads; ++i) {
    const std::uint64_t index = high_half(mix(next + i), count);
    sum += sum_of(lines ? index * 32 + element % 8 * 4 : index * width, width);
  }
  return sum;
}

std::uint32_t chained(const Run& run, std::uint64_t element) {
  std::uint32_t sum = 0;
  for (std::uint32_t k = 0; k < kChains; ++k) {
    std::uint32_t x = mix(static_cast<std::uint32_t>(element) * kChains + k);
    for (std::uint64_t step = 0; step < std::uint64_t{run.rounds} * kSteps; ++step) x = x * kFactor + kAddend;
    sum += x;
  }
  return sum;
}

float multiply_add(float a, float b, float c, bool fused) {
  if (fused) return std::fma(a, b, c);
  const volatile float product = a * b;  // else this compiler may fuse it
  return product + c;
}

std::uint32_t circled(const Run& run, std::uint64_t element, bool fused) {
  constexpr std::uint32_t kPairs = kChains / 2;
  std::uint32_t sum = 0;
  for (std::uint32_t k = 0; k < kPairs; ++k) {
    const std::uint32_t start = mix(static_cast<std::uint32_t>(element) * kPairs + k);
    float x = std::bit_cast<float>(start >> 9 | 0x3f800000u);
    float y = x * -0.5f;
    // A circle of additions and multiplications (HAKMEM, item 149, Minsky).
    for (std::uint64_t step = 0; step < std::uint64_t{run.rounds} * kSteps; ++step) {
      x = multiply_add(y, -kAngle, x, fused);
      y = multiply_add(x, kAngle, y, fused);
    }
    sum += std::bit_cast<std::uint32_t>(x) + 3u * std::bit_cast<std::uint32_t>(y);
  }
  return sum;
}

int left(unsigned row, unsigned k) { return static_cast<int>((row * 7 + k * 5 + row * k) % 3) - 1; }
int right(unsigned k, unsigned column) { return static_cast<int>((k * 4 + column * 2 + k * column) % 3) - 1; }

std::uint32_t multiplied(const Run& run, std::uint64_t element) {
  const unsigned depth = run.kind == CeilingKind::matrix_i8 ? 32 : 16;
  const auto lane = static_cast<unsigned>(element % 32);
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < 4; ++i) {  // of the accumulator's fragment
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    int product = 0;
    for (unsigned k = 0; k < depth; ++k) product += left(row, k) * right(k, column);
    for (std::uint32_t tile = 0; tile < kTiles; ++tile)
      sum += (tile + run.rounds * static_cast<std::uint32_t>(product)) * (i + 1);
  }
  return sum;
}

}  // namespace

double work_of(const Run& run) {
  const double elements = static_cast<double>(run.elements), rounds = run.rounds;
  switch (run.kind) {
    case CeilingKind::stream_read:
      return static_cast<double>(run.bytes);
    case CeilingKind::stream_copy:
      return 2.0 * static_cast<double>(run.bytes);
    case CeilingKind::random4:
    case CeilingKind::random16:
      return elements * rounds * run.way.unroll;
    case CeilingKind::random128:
      return elements / 8 * rounds * run.way.unroll;
    case CeilingKind::integer:
    case CeilingKind::floating:
      return elements * rounds * kSteps * kChains * 2;
    case CeilingKind::matrix_f16:
    case CeilingKind::matrix_bf16:
      return elements / 32 * rounds * kTiles * (16.0 * 8 * 16 * 2);
    case CeilingKind::matrix_i8:
      return elements / 32 * rounds * kTiles * (16.0 * 8 * 32 * 2);
  }
  return 0;
}

std::uint32_t expected(const Run& run, std::uint64_t element, bool fused) {
  switch (run.kind) {
    case CeilingKind::stream_read:
      return streamed(run, element);
    case CeilingKind::stream_copy:
      return mix(static_cast<std::uint32_t>(element));
    case CeilingKind::random4:
    case CeilingKind::random16:
    case CeilingKind::random128:
      return loaded(run, element);
    case CeilingKind::integer:
      return chained(run, element);
    case CeilingKind::floating:
      return circled(run, element, fused);
    case CeilingKind::matrix_f16:
    case CeilingKind::matrix_bf16:
    case CeilingKind::matrix_i8:
      return multiplied(run, element);
  }
  return 0;
}

double cost_of(const Run& run) {
  const double rounds = run.rounds;
  if (run.kind == CeilingKind::stream_copy) return 1;
  if (is_memory(run.kind)) return rounds * run.way.unroll * (run.kind == CeilingKind::random4 ? 1 : 4);
  if (is_matrix(run.kind)) return 4.0 * 32;
  return rounds * kSteps * kChains;
}

}  // namespace furlong::device::internal
