#include "furlong/device/internal/ceiling_kernels.h"

#include <algorithm>

#include "furlong/base/architecture.h"

namespace furlong::device::internal {
namespace {

// CUDA and OpenCL differ in a few words only.
constexpr std::string_view kCudaWords = R"(
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define RESTRICT __restrict__
#define INLINE __device__ __forceinline__
#define ELEMENT (blockIdx.x * blockDim.x + threadIdx.x)
#define BLOCK blockIdx.x
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define HIGH_HALF(a, b) __umulhi(a, b)
#define MAKE_QUAD(a, b, c, d) make_uint4(a, b, c, d)
typedef unsigned int uint;
typedef unsigned long long ulong64;
)";

constexpr std::string_view kOpenClWords = R"(
#define KERNEL __kernel void
#define GLOBAL __global
#define RESTRICT restrict
#define INLINE inline
#define ELEMENT ((uint)get_global_id(0))
#define BLOCK ((uint)get_group_id(0))
#define THREAD ((uint)get_local_id(0))
#define THREADS ((uint)get_local_size(0))
#define HIGH_HALF(a, b) mul_hi(a, b)
#define MAKE_QUAD(a, b, c, d) (uint4)(a, b, c, d)
typedef ulong ulong64;
)";

constexpr std::string_view kSimtMemory = R"(
#if STRIPS
#define FIRST ((ulong64)ELEMENT * rounds * UNROLL)
#define APART 1u
#else
#define FIRST ((ulong64)BLOCK * THREADS * rounds * UNROLL + THREAD)
#define APART THREADS
#endif

INLINE uint mix(uint x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

KERNEL fill(GLOBAL uint4* quads, uint count) {
  const uint i = ELEMENT;
  if (i < count) quads[i] = MAKE_QUAD(mix(4u * i), mix(4u * i + 1u), mix(4u * i + 2u), mix(4u * i + 3u));
}

KERNEL stream_read(GLOBAL const uint4* RESTRICT from, GLOBAL uint* RESTRICT out, uint rounds) {
  GLOBAL const uint4* at = from + FIRST;
  uint sum = 0u;
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
    uint4 got[UNROLL];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) got[i] = at[i * APART];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) sum += got[i].x + got[i].y + got[i].z + got[i].w;
    at += UNROLL * APART;
  }
  out[ELEMENT] = sum;
}

KERNEL stream_copy(GLOBAL const uint4* RESTRICT from, GLOBAL uint4* RESTRICT into, uint rounds) {
  GLOBAL const uint4* at = from + FIRST;
  GLOBAL uint4* to = into + FIRST;
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
    uint4 got[UNROLL];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) got[i] = at[i * APART];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) to[i * APART] = got[i];
    at += UNROLL * APART;
    to += UNROLL * APART;
  }
}

KERNEL random4(GLOBAL const uint* RESTRICT from, GLOBAL uint* RESTRICT out, uint rounds, uint count) {
  uint next = ELEMENT * rounds * UNROLL;
  uint sum = 0u;
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
    uint got[UNROLL];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) got[i] = from[HIGH_HALF(mix(next + i), count)];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) sum += got[i];
    next += UNROLL;
  }
  out[ELEMENT] = sum;
}

KERNEL random16(GLOBAL const uint4* RESTRICT from, GLOBAL uint* RESTRICT out, uint rounds, uint count) {
  uint next = ELEMENT * rounds * UNROLL;
  uint sum = 0u;
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
    uint4 got[UNROLL];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) got[i] = from[HIGH_HALF(mix(next + i), count)];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) sum += got[i].x + got[i].y + got[i].z + got[i].w;
    next += UNROLL;
  }
  out[ELEMENT] = sum;
}

KERNEL random128(GLOBAL const uint4* RESTRICT from, GLOBAL uint* RESTRICT out, uint rounds, uint count) {
  uint next = ELEMENT / 8u * rounds * UNROLL;
  const uint place = ELEMENT % 8u;
  uint sum = 0u;
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
    uint4 got[UNROLL];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) got[i] = from[HIGH_HALF(mix(next + i), count) * 8u + place];
#pragma unroll
    for (uint i = 0u; i < UNROLL; ++i) sum += got[i].x + got[i].y + got[i].z + got[i].w;
    next += UNROLL;
  }
  out[ELEMENT] = sum;
}
)";

constexpr std::string_view kCudaArithmeticWords = R"(
typedef uint word;
typedef float real;
#define ELEMENTS ELEMENT
#define REAL_OF(bits) __uint_as_float(bits)
#define BITS_OF(real) __float_as_uint(real)
#define FUSED(a, b, c) fmaf(a, b, c)
)";

constexpr std::string_view kOpenClArithmeticWords = R"(
#if WIDTH == 8
typedef uint8 word;
typedef float8 real;
#define ELEMENTS ((uint8)(ELEMENT * 8u) + (uint8)(0, 1, 2, 3, 4, 5, 6, 7))
#define REAL_OF(bits) as_float8(bits)
#define BITS_OF(real) as_uint8(real)
#elif WIDTH == 16
typedef uint16 word;
typedef float16 real;
#define ELEMENTS ((uint16)(ELEMENT * 16u) + (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define REAL_OF(bits) as_float16(bits)
#define BITS_OF(real) as_uint16(real)
#else
typedef uint word;
typedef float real;
#define ELEMENTS ELEMENT
#define REAL_OF(bits) as_float(bits)
#define BITS_OF(real) as_uint(real)
#endif
#define FUSED(a, b, c) fma(a, b, c)
)";

constexpr std::string_view kSimtArithmetic = R"(
INLINE word mix(word x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

KERNEL integer(GLOBAL word* out, uint rounds, uint factor, uint addend) {
  const word element = ELEMENTS;
  word x[CHAINS];
  for (uint k = 0u; k < CHAINS; ++k) x[k] = mix(element * CHAINS + k);
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
#pragma unroll
    for (uint step = 0u; step < STEPS; ++step) {
#pragma unroll
      for (uint k = 0u; k < CHAINS; ++k) x[k] = x[k] * factor + addend;
    }
  }
  word sum = x[0];
  for (uint k = 1u; k < CHAINS; ++k) sum += x[k];
  out[ELEMENT] = sum;
}

// Points that go round in circles: neither grows nor settles, and every step counts.
KERNEL floating(GLOBAL word* out, uint rounds, float angle) {
  const word element = ELEMENTS;
  real x[CHAINS / 2], y[CHAINS / 2];
  for (uint k = 0u; k < CHAINS / 2; ++k) {
    x[k] = REAL_OF((mix(element * (CHAINS / 2) + k) >> 9) | 0x3f800000u);
    y[k] = x[k] * -0.5f;
  }
  const real forth = (real)(angle), back = -forth;
#pragma unroll 1
  for (uint round = 0u; round < rounds; ++round) {
#pragma unroll
    for (uint step = 0u; step < STEPS; ++step) {
#pragma unroll
      for (uint k = 0u; k < CHAINS / 2; ++k) x[k] = FUSED(y[k], back, x[k]);
#pragma unroll
      for (uint k = 0u; k < CHAINS / 2; ++k) y[k] = FUSED(x[k], forth, y[k]);
    }
  }
  word sum = BITS_OF(x[0]) + BITS_OF(y[0]) * 3u;
  for (uint k = 1u; k < CHAINS / 2; ++k) sum += BITS_OF(x[k]) + BITS_OF(y[k]) * 3u;
  out[ELEMENT] = sum;
}
)";

// Layouts of the fragments: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "… m16n8k32". Factors are -1, 0
// and 1, so that every sum is exact.
constexpr std::string_view kMatrix = R"(
INLINE int left(uint row, uint k) { return (int)((row * 7u + k * 5u + row * k) % 3u) - 1; }
INLINE int right(uint k, uint column) { return (int)((k * 4u + column * 2u + k * column) % 3u) - 1; }
INLINE uint half(int value, uint one) { return value == 0 ? 0u : value < 0 ? one | 0x8000u : one; }
INLINE uint left_pair(uint row, uint k, uint one) {
  return half(left(row, k), one) | half(left(row, k + 1u), one) << 16;
}
INLINE uint right_pair(uint k, uint column, uint one) {
  return half(right(k, column), one) | half(right(k + 1u, column), one) << 16;
}
INLINE uint left_four(uint row, uint k) {
  uint four = 0u;
  for (uint i = 0u; i < 4u; ++i) four |= ((uint)left(row, k + i) & 255u) << 8u * i;
  return four;
}
INLINE uint right_four(uint k, uint column) {
  uint four = 0u;
  for (uint i = 0u; i < 4u; ++i) four |= ((uint)right(k + i, column) & 255u) << 8u * i;
  return four;
}

#define MATRIX(NAME, TYPE, CONSTRAINT, INSTRUCTION)                                                        \
  KERNEL NAME(uint* out, uint rounds) {                                                                    \
    const uint group = threadIdx.x % 32u / 4u, place = threadIdx.x % 4u;                                   \
    uint a[4], b[2];                                                                                       \
    NAME##_factors(group, place, a, b);                                                                    \
    TYPE c[TILES][4];                                                                                      \
    for (int tile = 0; tile < TILES; ++tile)                                                               \
      for (int i = 0; i < 4; ++i) c[tile][i] = (TYPE)tile;                                                 \
    _Pragma("unroll 1") for (uint round = 0u; round < rounds; ++round) {                                   \
      _Pragma("unroll") for (int tile = 0; tile < TILES; ++tile)                                           \
        asm volatile(INSTRUCTION " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
                     : CONSTRAINT(c[tile][0]), CONSTRAINT(c[tile][1]), CONSTRAINT(c[tile][2]),             \
                       CONSTRAINT(c[tile][3])                                                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                  \
    }                                                                                                      \
    uint sum = 0u;                                                                                         \
    for (int tile = 0; tile < TILES; ++tile)                                                               \
      for (int i = 0; i < 4; ++i) sum += (uint)(int)c[tile][i] * (uint)(i + 1);                            \
    out[ELEMENT] = sum;                                                                                    \
  }

INLINE void half_factors(uint group, uint place, uint one, uint* a, uint* b) {
  a[0] = left_pair(group, place * 2u, one);
  a[1] = left_pair(group + 8u, place * 2u, one);
  a[2] = left_pair(group, place * 2u + 8u, one);
  a[3] = left_pair(group + 8u, place * 2u + 8u, one);
  b[0] = right_pair(place * 2u, group, one);
  b[1] = right_pair(place * 2u + 8u, group, one);
}
INLINE void matrix_f16_factors(uint group, uint place, uint* a, uint* b) {
  half_factors(group, place, 0x3c00u, a, b);
}
INLINE void matrix_bf16_factors(uint group, uint place, uint* a, uint* b) {
  half_factors(group, place, 0x3f80u, a, b);
}
INLINE void matrix_i8_factors(uint group, uint place, uint* a, uint* b) {
  a[0] = left_four(group, place * 4u);
  a[1] = left_four(group + 8u, place * 4u);
  a[2] = left_four(group, place * 4u + 16u);
  a[3] = left_four(group + 8u, place * 4u + 16u);
  b[0] = right_four(place * 4u, group);
  b[1] = right_four(place * 4u + 16u, group);
}
MATRIX(matrix_f16, float, "+f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MATRIX(matrix_bf16, float, "+f", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MATRIX(matrix_i8, int, "+r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
)";

// A host kernel is called once a block. Streams go through the block's memory row by row, with one sum a
// column; chains of arithmetic are vectors of LANES elements.
constexpr std::string_view kHostMemory = R"(
typedef uint32_t uint;
struct alignas(16) quad { uint x, y, z, w; };
static inline uint mix(uint x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}
static inline uint high_half(uint a, uint b) { return uint((uint64_t)a * b >> 32); }
static inline uint sum_of(const quad& q) { return q.x + q.y + q.z + q.w; }

extern "C" void fill(const furlong_block& block, quad* quads, uint count) {
  const uint first = uint(block.x * block.threads_x);
  for (uint i = first; i < first + block.threads_x && i < count; ++i)
    quads[i] = quad{mix(4 * i), mix(4 * i + 1), mix(4 * i + 2), mix(4 * i + 3)};
}

extern "C" void stream_read(const furlong_block& block, const uint* __restrict__ from,
                            uint* __restrict__ out, uint rounds) {
  const uint columns = block.threads_x * 4;
  const uint* at = from + block.x * columns * rounds * UNROLL;
  uint sums[4096];
  for (uint i = 0; i < columns; ++i) sums[i] = 0;
  for (uint row = 0; row < rounds * UNROLL; ++row, at += columns) {
    __builtin_prefetch(at + columns);
#pragma GCC ivdep
    for (uint i = 0; i < columns; ++i) sums[i] += at[i];
  }
  for (uint t = 0; t < block.threads_x; ++t)
    out[block.x * block.threads_x + t] = sums[4 * t] + sums[4 * t + 1] + sums[4 * t + 2] + sums[4 * t + 3];
}

extern "C" void stream_copy(const furlong_block& block, const char* __restrict__ from,
                            char* __restrict__ into, uint rounds) {
  const uint64_t bytes = 16ull * block.threads_x * rounds * UNROLL;
  __builtin_memcpy(into + block.x * bytes, from + block.x * bytes, bytes);
}

extern "C" void random4(const furlong_block& block, const uint* __restrict__ from,
                        uint* __restrict__ out, uint rounds, uint count) {
  for (uint t = 0; t < block.threads_x; ++t) {
    const uint element = uint(block.x * block.threads_x + t);
    uint next = element * rounds * UNROLL, sum = 0;
    for (uint round = 0; round < rounds; ++round, next += UNROLL) {
      uint place[UNROLL];
#pragma GCC unroll 16
      for (uint i = 0; i < UNROLL; ++i) place[i] = high_half(mix(next + i), count);
#pragma GCC unroll 16
      for (uint i = 0; i < UNROLL; ++i) sum += from[place[i]];
    }
    out[element] = sum;
  }
}

extern "C" void random16(const furlong_block& block, const quad* __restrict__ from,
                         uint* __restrict__ out, uint rounds, uint count) {
  for (uint t = 0; t < block.threads_x; ++t) {
    const uint element = uint(block.x * block.threads_x + t);
    uint next = element * rounds * UNROLL, sum = 0;
    for (uint round = 0; round < rounds; ++round, next += UNROLL) {
      uint place[UNROLL];
#pragma GCC unroll 16
      for (uint i = 0; i < UNROLL; ++i) place[i] = high_half(mix(next + i), count);
#pragma GCC unroll 16
      for (uint i = 0; i < UNROLL; ++i) sum += sum_of(from[place[i]]);
    }
    out[element] = sum;
  }
}

extern "C" void random128(const furlong_block& block, const quad* __restrict__ from,
                          uint* __restrict__ out, uint rounds, uint count) {
  for (uint t = 0; t < block.threads_x; t += 8) {
    const uint element = uint(block.x * block.threads_x + t);
    uint next = element / 8 * rounds * UNROLL;
    uint sums[8] = {};
    for (uint round = 0; round < rounds; ++round, next += UNROLL) {
      uint place[UNROLL];
#pragma GCC unroll 16
      for (uint i = 0; i < UNROLL; ++i) place[i] = high_half(mix(next + i), count) * 8;
#pragma GCC unroll 16
      for (uint i = 0; i < UNROLL; ++i)
#pragma GCC unroll 8
        for (uint k = 0; k < 8; ++k) sums[k] += sum_of(from[place[i] + k]);
    }
    for (uint k = 0; k < 8; ++k) out[element + k] = sums[k];
  }
}
)";

constexpr std::string_view kHostArithmetic = R"(
#pragma GCC diagnostic ignored "-Wpsabi"
#define LANES 16
typedef uint32_t uint;
typedef uint32_t word __attribute__((vector_size(4 * LANES)));
typedef float real __attribute__((vector_size(4 * LANES)));
#define INLINE static inline __attribute__((always_inline))
INLINE word mix(word x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}
INLINE word elements(const furlong_block& block, uint t) {
  word element = {};
  for (uint lane = 0; lane < LANES; ++lane) element[lane] = uint(block.x * block.threads_x) + t + lane;
  return element;
}
INLINE void store(const furlong_block& block, uint t, uint* out, word sum) {
  for (uint lane = 0; lane < LANES; ++lane) out[block.x * block.threads_x + t + lane] = sum[lane];
}

extern "C" void integer(const furlong_block& block, uint* out, uint rounds, uint factor, uint addend) {
  for (uint t = 0; t < block.threads_x; t += LANES) {
    const word element = elements(block, t);
    word x[CHAINS];
#pragma GCC unroll 8
    for (uint k = 0; k < CHAINS; ++k) x[k] = mix(element * CHAINS + k);
    for (uint step = 0; step < rounds * STEPS; ++step) {
#pragma GCC unroll 8
      for (uint k = 0; k < CHAINS; ++k) x[k] = x[k] * factor + addend;
    }
    word sum = x[0];
#pragma GCC unroll 8
    for (uint k = 1; k < CHAINS; ++k) sum += x[k];
    store(block, t, out, sum);
  }
}

extern "C" void floating(const furlong_block& block, uint* out, uint rounds, float angle) {
  for (uint t = 0; t < block.threads_x; t += LANES) {
    const word element = elements(block, t);
    real x[CHAINS / 2], y[CHAINS / 2];
#pragma GCC unroll 8
    for (uint k = 0; k < CHAINS / 2; ++k) {
      x[k] = (real)((mix(element * (CHAINS / 2) + k) >> 9) | 0x3f800000u);
      y[k] = x[k] * -0.5f;
    }
    for (uint step = 0; step < rounds * STEPS; ++step) {
#pragma GCC unroll 8
      for (uint k = 0; k < CHAINS / 2; ++k) x[k] = x[k] - y[k] * angle;
#pragma GCC unroll 8
      for (uint k = 0; k < CHAINS / 2; ++k) y[k] = y[k] + x[k] * angle;
    }
    word sum = (word)x[0] + (word)y[0] * 3u;
#pragma GCC unroll 8
    for (uint k = 1; k < CHAINS / 2; ++k) sum += (word)x[k] + (word)y[k] * 3u;
    store(block, t, out, sum);
  }
}
)";

std::string source_of(CeilingKind kind, Language language) {
  if (language == Language::host) return std::string(is_memory(kind) ? kHostMemory : kHostArithmetic);
  const bool cuda = language == Language::cuda;
  std::string text(cuda ? kCudaWords : kOpenClWords);
  if (is_memory(kind)) return text.append(kSimtMemory);
  if (is_matrix(kind)) return text.append(kMatrix);
  return text.append(cuda ? kCudaArithmeticWords : kOpenClArithmeticWords).append(kSimtArithmetic);
}

std::vector<std::string> entries_of(CeilingKind kind) {
  if (is_memory(kind)) return {"fill", "stream_read", "stream_copy", "random4", "random16", "random128"};
  if (is_matrix(kind)) return {"matrix_f16", "matrix_bf16", "matrix_i8"};
  return {"integer", "floating"};
}

}  // namespace

bool is_memory(CeilingKind kind) { return kind <= CeilingKind::random128; }
bool is_matrix(CeilingKind kind) { return kind >= CeilingKind::matrix_f16; }
bool is_random(CeilingKind kind) { return kind >= CeilingKind::random4 && kind <= CeilingKind::random128; }

std::string entry_of(CeilingKind kind) {
  return kind == CeilingKind::floating ? "floating" : std::string(ceiling_name(kind));
}

std::string words_of(CeilingKind kind, const Way& way) {
  if (is_memory(kind)) return fmt::format("unroll {}, block {}", way.unroll, way.block);
  if (way.width > 1) return fmt::format("block {}, vectors of {}", way.block, way.width);
  return fmt::format("block {}", way.block);
}

bool has_kernel(CeilingKind kind, Language language, std::string_view arch) {
  if (language != Language::cuda && language != Language::opencl && language != Language::host) return false;
  // The instruction's shapes are there from compute capability 8.0 on.
  return !is_matrix(kind) || (language == Language::cuda && compute_capability(arch) >= 80);
}

std::vector<Way> ways_of(CeilingKind kind, Language language, const Facts& facts) {
  std::vector<Way> ways;
  if (is_matrix(kind)) {
    ways = {{.block = 128}, {.block = 256}};
  } else if (!is_memory(kind)) {
    if (language == Language::opencl && facts.runs_on_host_cpu)
      ways = {{.block = 64, .width = 8}, {.block = 64, .width = 16}};
    else
      ways = {{.block = 256}, {.block = 512}};
  } else if (facts.runs_on_host_cpu) {
    const bool strips = language == Language::opencl;
    ways = {{.unroll = 4, .block = 256, .strips = strips},
            {.unroll = 8, .block = 256, .strips = strips},
            {.unroll = 16, .block = 256, .strips = strips}};
  } else if (is_random(kind)) {
    ways = {{.unroll = 4, .block = 256},
            {.unroll = 8, .block = 256},
            {.unroll = 8, .block = 1024},
            {.unroll = 16, .block = 128}};
  } else {
    ways = {{.unroll = 4, .block = 256},
            {.unroll = 4, .block = 512},
            {.unroll = 8, .block = 256},
            {.unroll = 16, .block = 128}};
  }
  std::erase_if(ways, [&](const Way& way) { return way.block > facts.max_threads_per_block; });
  if (ways.empty()) ways = {{.unroll = 8, .block = 64}};
  return ways;
}

CompileRequest request_of(CeilingKind kind, Language language, const Way& way) {
  CompileRequest request;
  request.language = language;
  request.name = is_memory(kind)
                     ? fmt::format("ceilings-memory-u{}{}", way.unroll, way.strips ? "-strips" : "")
                 : is_matrix(kind) ? "ceilings-matrix"
                                   : fmt::format("ceilings-arithmetic-v{}", way.width);
  request.source = source_of(kind, language);
  request.source_name = request.name;
  request.entries = entries_of(kind);
  if (is_memory(kind)) {
    request.defines = {{"UNROLL", fmt::format("{}u", way.unroll)}, {"STRIPS", way.strips ? "1" : "0"}};
  } else {
    request.defines = {{"CHAINS", fmt::format("{}u", kChains)},
                       {"STEPS", fmt::format("{}u", kSteps)},
                       {"TILES", std::to_string(kTiles)},
                       {"WIDTH", std::to_string(way.width)}};
  }
  if (language == Language::host) request.options = {"-O3", "-ffp-contract=fast"};
  return request;
}

}  // namespace furlong::device::internal
