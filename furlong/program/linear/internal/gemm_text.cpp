// CUDA texts of the matrix product. Constants in capitals come before them (emit_gemm.cpp).
#include "furlong/program/linear/internal/texts.h"

namespace furlong::program::linear {

// Operands of the program are REAL ? f32 : int64, row by row; so is the product.
const std::string_view gemm_common_text = R"cuda(
typedef unsigned char uint8;
typedef unsigned int uint32;
typedef unsigned long long uint64;

__device__ __forceinline__ uint32 word_at(const uint8* from) { return *reinterpret_cast<const uint32*>(from); }

#if REAL
typedef float Operand;
typedef float Sum;
typedef float Product;
typedef float2 ProductPair;
#else
typedef long long Operand;
typedef unsigned long long Sum;  // wraps modulo 2^64
typedef long long Product;
typedef longlong2 ProductPair;
#endif
)cuda";

// A thread has 4 x 4 elements of a tile of 64 x 64; any shape.
const std::string_view gemm_plain_text = R"cuda(
#define PLAIN_DEPTH 16u
extern "C" __global__ void __launch_bounds__(256)
    gemm_plain(const Operand* a, const Operand* b, Product* c, uint32 m, uint32 n, uint32 k) {
  __shared__ Sum tile_a[PLAIN_DEPTH][64 + 1];
  __shared__ Sum tile_b[PLAIN_DEPTH][64];
  const uint32 x = threadIdx.x % 16u, y = threadIdx.x / 16u;
  const uint32 tiles_n = (n + 63u) / 64u;
  const uint32 row0 = blockIdx.x / tiles_n * 64u, column0 = blockIdx.x % tiles_n * 64u;
  Sum sums[4][4] = {};
  for (uint32 k0 = 0u; k0 < k; k0 += PLAIN_DEPTH) {
    for (uint32 i = threadIdx.x; i < 64u * PLAIN_DEPTH; i += 256u) {
      const uint32 row = row0 + i / PLAIN_DEPTH, at = k0 + i % PLAIN_DEPTH;
      tile_a[i % PLAIN_DEPTH][i / PLAIN_DEPTH] =
          row < m && at < k ? static_cast<Sum>(a[static_cast<uint64>(row) * k + at]) : Sum(0);
      const uint32 column = column0 + i % 64u, from = k0 + i / 64u;
      tile_b[i / 64u][i % 64u] =
          column < n && from < k ? static_cast<Sum>(b[static_cast<uint64>(from) * n + column]) : Sum(0);
    }
    __syncthreads();
#pragma unroll
    for (uint32 d = 0u; d < PLAIN_DEPTH; ++d) {
      Sum left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = tile_a[d][y + 16u * i], right[i] = tile_b[d][x + 16u * i];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32 row = row0 + y + 16u * i, column = column0 + x + 16u * j;
      if (row < m && column < n) c[static_cast<uint64>(row) * n + column] = static_cast<Product>(sums[i][j]);
    }
}
)cuda";

// Operands in ELEMENT_BYTES an element: A row by row, B column by column. Made once.
const std::string_view gemm_pack_text = R"cuda(
#if ELEMENT_BYTES == 1
typedef signed char Element;
__device__ __forceinline__ Element pack(Operand value) { return static_cast<Element>(value); }
#else
typedef unsigned short Element;
__device__ __forceinline__ Element pack(Operand operand) {
  const float value = static_cast<float>(operand);
#if IS_BF16
  const uint32 bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;  // not a number
  return static_cast<Element>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);  // to nearest, ties to even
#else
  return static_cast<Element>(f32_half(value));
#endif
}
#endif

extern "C" __global__ void gemm_pack_a(const Operand* a, Element* packed, uint32 m, uint32 k) {
  const uint64 count = static_cast<uint64>(m) * k;
  for (uint64 i = static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<uint64>(gridDim.x) * blockDim.x)
    packed[i] = pack(a[i]);
}

// k rows of n become n rows of k, by tiles of 32 x 32.
extern "C" __global__ void __launch_bounds__(256) gemm_pack_b(const Operand* b, Element* packed, uint32 n, uint32 k) {
  __shared__ Element tile[32][33];
  const uint32 x = threadIdx.x % 32u, y = threadIdx.x / 32u;
  const uint32 columns = (n + 31u) / 32u;
  const uint32 column0 = blockIdx.x % columns * 32u, row0 = blockIdx.x / columns * 32u;
  for (uint32 i = y; i < 32u; i += 8u)
    if (row0 + i < k && column0 + x < n) tile[i][x] = pack(b[static_cast<uint64>(row0 + i) * n + column0 + x]);
  __syncthreads();
  for (uint32 i = y; i < 32u; i += 8u)
    if (column0 + i < n && row0 + x < k) packed[static_cast<uint64>(column0 + i) * k + row0 + x] = tile[x][i];
}
)cuda";

const std::string_view gemm_dp4a_text = R"cuda(
// A thread has 4 x 4 elements of a tile of 64 x 64; words of four along k.
extern "C" __global__ void __launch_bounds__(256)
    gemm_dp4a(const int* a, const int* b, Product* c, uint32 m, uint32 n, uint32 k) {
  __shared__ int tile_a[16][64 + 1], tile_b[16][64 + 1];
  const uint32 x = threadIdx.x % 16u, y = threadIdx.x / 16u, words = k / 4u;
  const uint32 tiles_n = (n + 63u) / 64u;
  const uint32 row0 = blockIdx.x / tiles_n * 64u, column0 = blockIdx.x % tiles_n * 64u;
  int sums[4][4] = {};
  for (uint32 k0 = 0u; k0 < words; k0 += 16u) {
    for (uint32 i = threadIdx.x; i < 1024u; i += 256u) {
      const uint32 row = i / 16u, at = k0 + i % 16u;
      tile_a[i % 16u][row] = row0 + row < m && at < words ? a[static_cast<uint64>(row0 + row) * words + at] : 0;
      tile_b[i % 16u][row] = column0 + row < n && at < words ? b[static_cast<uint64>(column0 + row) * words + at] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 16; ++d) {
      int left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = tile_a[d][y + 16u * i], right[i] = tile_b[d][x + 16u * i];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = __dp4a(left[i], right[j], sums[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32 row = row0 + y + 16u * i, column = column0 + x + 16u * j;
      if (row < m && column < n) c[static_cast<uint64>(row) * n + column] = sums[i][j];
    }
}
)cuda";

// One warp, one tile of 16 x 16, fragments straight from memory. Shapes are multiples of 16.
const std::string_view gemm_warp_text = R"cuda(
extern "C" __global__ void __launch_bounds__(32)
    gemm_warp(const uint8* a, const uint8* b, Product* c, uint32 m, uint32 n, uint32 k) {
  const uint32 lane = threadIdx.x;
  const uint64 row_bytes = static_cast<uint64>(k) * ELEMENT_BYTES;
  const uint32 row0 = blockIdx.x / (n / 16u) * 16u, column0 = blockIdx.x % (n / 16u) * 16u;
  // A fragment's words: rows lane / 4 and 8 further, bytes 4 (lane % 4) and 16 further.
  const uint8* left = a + (row0 + lane / 4u) * row_bytes + lane % 4u * 4u;
  const uint8* right = b + (column0 + lane / 4u) * row_bytes + lane % 4u * 4u;
  Accumulator sums[2][4] = {};
  uint64 at = 0u;
#pragma unroll 2
  for (; at + 32u <= row_bytes; at += 32u) {
    const uint32 a0 = word_at(left + at), a1 = word_at(left + 8u * row_bytes + at);
    const uint32 a2 = word_at(left + at + 16u), a3 = word_at(left + 8u * row_bytes + at + 16u);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      MMA(sums[half], a0, a1, a2, a3, word_at(right + half * 8u * row_bytes + at),
          word_at(right + half * 8u * row_bytes + at + 16u));
  }
  if (at < row_bytes) {  // int8 with an odd number of sixteens
    const uint32 a0 = word_at(left + at), a1 = word_at(left + 8u * row_bytes + at);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      MMA(sums[half], a0, a1, 0u, 0u, word_at(right + half * 8u * row_bytes + at), 0u);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      c[static_cast<uint64>(row0 + lane / 4u + i / 2 * 8u) * n + column0 + half * 8u + lane % 4u * 2u + i % 2] =
          static_cast<Product>(sums[half][i]);
}
)cuda";

const std::string_view gemm_tiles_text = R"cuda(
// Where a block's tile begins. Blocks that run together have a band of 8 tiles of rows, so that what they share is near.
struct Place {
  uint32 row, column;
};
__device__ __forceinline__ Place place_of_block(uint32 m, uint32 n, uint32 tile_rows) {
  const uint32 tiles_n = n / TILE, first = blockIdx.x / (8u * tiles_n) * 8u;
  const uint32 height = min(8u, m / tile_rows - first), in_band = blockIdx.x % (8u * tiles_n);
  return {(first + in_band % height) * tile_rows, in_band / height * TILE};
}

// Two neighbours of a row of the product, which an even column begins.
__device__ __forceinline__ void store_pair(Product* c, uint32 row, uint32 column, uint32 n, Accumulator x, Accumulator y) {
  ProductPair pair;
  pair.x = static_cast<Product>(x);
  pair.y = static_cast<Product>(y);
  *reinterpret_cast<ProductPair*>(c + static_cast<uint64>(row) * n + column) = pair;
}
)cuda";

// A block of warps has a tile of TILE x TILE; slabs of 64 bytes of k come by asynchronous copies into one of
// two halves of shared memory while the other is multiplied. Shapes are multiples of the tile.
const std::string_view gemm_block_text = R"cuda(
#define SLAB_BYTES 64u
#define WARP_ROWS 2
#define WARP_COLUMNS (TILE / 32)
#define ROWS_A_WARP (TILE / WARP_ROWS)
#define THREADS (WARP_ROWS * WARP_COLUMNS * 32)
#define FRAGMENTS (ROWS_A_WARP / 16)

// A row of 64 bytes is four pieces of 16; they are exchanged so that eight rows' same pieces lie in different banks.
__device__ __forceinline__ uint32 place(uint32 row, uint32 piece) {
  return row * SLAB_BYTES + (piece ^ (row >> 1 & 3u)) * 16u;
}

__device__ __forceinline__ void copy_slab(uint8* to, const uint8* from, uint64 row_bytes) {
#pragma unroll
  for (uint32 i = threadIdx.x; i < TILE * 4u; i += THREADS)
    copy_async(to + place(i / 4u, i % 4u), from + i / 4u * row_bytes + i % 4u * 16u);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_block(const uint8* a, const uint8* b, Product* c, uint32 m, uint32 n, uint32 k) {
  __shared__ __align__(128) uint8 slabs[STAGES][2][TILE * SLAB_BYTES];
  const uint32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  const uint64 row_bytes = static_cast<uint64>(k) * ELEMENT_BYTES;
  const Place own = place_of_block(m, n, TILE);
  const uint32 row0 = own.row, column0 = own.column;
  const uint8* left = a + row0 * row_bytes;
  const uint8* right = b + column0 * row_bytes;
  const uint32 count = static_cast<uint32>(row_bytes / SLAB_BYTES);
  Accumulator sums[FRAGMENTS][4][4] = {};
#pragma unroll
  for (uint32 s = 0u; s < STAGES - 1u; ++s) {
    if (s < count) {
      copy_slab(slabs[s][0], left + s * SLAB_BYTES, row_bytes);
      copy_slab(slabs[s][1], right + s * SLAB_BYTES, row_bytes);
    }
    copy_commit();
  }
  const uint32 warp_row = warp % WARP_ROWS * ROWS_A_WARP, warp_column = warp / WARP_ROWS * 32u;
  uint32 stage = 0u, fill = STAGES - 1u;
  for (uint32 s = 0u; s < count; ++s) {
    copy_wait<STAGES - 2>();
    __syncthreads();
    if (s + STAGES - 1u < count) {
      copy_slab(slabs[fill][0], left + static_cast<uint64>(s + STAGES - 1u) * SLAB_BYTES, row_bytes);
      copy_slab(slabs[fill][1], right + static_cast<uint64>(s + STAGES - 1u) * SLAB_BYTES, row_bytes);
    }
    copy_commit();
    fill = fill + 1u == STAGES ? 0u : fill + 1u;
    const uint8* tile_a = slabs[stage][0];
    const uint8* tile_b = slabs[stage][1];
    stage = stage + 1u == STAGES ? 0u : stage + 1u;
#pragma unroll
    for (uint32 half = 0u; half < 2u; ++half) {
      uint32 rows[FRAGMENTS][4], columns[2][4];
#pragma unroll
      for (int i = 0; i < FRAGMENTS; ++i)
        load_matrices(rows[i], tile_a + place(warp_row + i * 16u + lane % 16u, half * 2u + lane / 16u));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        load_matrices(columns[j], tile_b + place(warp_column + j * 16u + lane % 8u + lane / 16u * 8u,
                                                 half * 2u + lane / 8u % 2u));
#pragma unroll
      for (int i = 0; i < FRAGMENTS; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          MMA(sums[i][j], rows[i][0], rows[i][1], rows[i][2], rows[i][3], columns[j / 2][j % 2 * 2],
              columns[j / 2][j % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < FRAGMENTS; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32 row = row0 + warp_row + i * 16u + lane / 4u + half * 8u;
        const uint32 column = column0 + warp_column + j * 8u + lane % 4u * 2u;
        store_pair(c, row, column, n, sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
      }
}
)cuda";

// Hopper's warp groups: 128 threads multiply 64 rows by TILE columns straight from shared memory, while the
// next slabs of 128 bytes of k come by asynchronous copies. A block has two groups and a tile of 128 x TILE;
// the function multiply() with its TILE / 2 sums a thread is made by the emitter.
const std::string_view gemm_group_text = R"cuda(
#define SLAB_BYTES 128u
#define TILE_ROWS 128u
#define STAGE_BYTES ((TILE_ROWS + TILE) * SLAB_BYTES)

// Shared memory as the instruction is told of it: rows of 128 bytes, groups of eight of them 1024 bytes apart, their
// pieces of 16 bytes exchanged by the row's number (the 128-byte swizzle).
__device__ __forceinline__ uint64 descriptor(const uint8* tile) {
  const uint64 address = static_cast<uint32>(__cvta_generic_to_shared(tile));
  return (address & 0x3ffffull) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ __forceinline__ void copy_rows(uint8* to, const uint8* from, uint32 rows, uint64 row_bytes) {
  for (uint32 i = threadIdx.x; i < rows * 8u; i += 256u)
    copy_async(to + i / 8u * SLAB_BYTES + (i % 8u ^ i / 8u % 8u) * 16u, from + i / 8u * row_bytes + i % 8u * 16u);
}

extern "C" __global__ void __launch_bounds__(256, 1)
    gemm_group(const uint8* a, const uint8* b, Product* c, uint32 m, uint32 n, uint32 k) {
  extern __shared__ uint8 unaligned[];
  uint8* const slabs = unaligned + ((1024u - (static_cast<uint32>(__cvta_generic_to_shared(unaligned)) & 1023u)) & 1023u);
  const uint32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u % 4u, group = threadIdx.x / 128u;
  const uint64 row_bytes = static_cast<uint64>(k) * ELEMENT_BYTES;
  const Place own = place_of_block(m, n, TILE_ROWS);
  const uint32 row0 = own.row, column0 = own.column;
  const uint8* left = a + row0 * row_bytes;
  const uint8* right = b + column0 * row_bytes;
  const uint32 count = static_cast<uint32>(row_bytes / SLAB_BYTES);
  Accumulator sums[TILE / 2];
#pragma unroll
  for (int i = 0; i < TILE / 2; ++i) sums[i] = 0;
  // A slab's place is filled again two slabs after it was multiplied: only then are both groups known to be done.
#pragma unroll
  for (uint32 s = 0u; s < STAGES - 2u; ++s) {
    if (s < count) {
      copy_rows(slabs + s * STAGE_BYTES, left + s * SLAB_BYTES, TILE_ROWS, row_bytes);
      copy_rows(slabs + s * STAGE_BYTES + TILE_ROWS * SLAB_BYTES, right + s * SLAB_BYTES, TILE, row_bytes);
    }
    copy_commit();
  }
  uint32 stage = 0u, fill = STAGES - 2u;
  for (uint32 s = 0u; s < count; ++s) {
    copy_wait<STAGES - 3>();
    fence_shared();
    __syncthreads();
    const uint8* tile = slabs + stage * STAGE_BYTES;
    const uint64 rows = descriptor(tile + group * 64u * SLAB_BYTES), columns = descriptor(tile + TILE_ROWS * SLAB_BYTES);
    group_begin();
#pragma unroll
    for (uint32 part = 0u; part < 4u; ++part) multiply(sums, rows + part * 2u, columns + part * 2u);
    group_commit();
    const uint32 next = s + STAGES - 2u;
    if (next < count) {
      uint8* to = slabs + fill * STAGE_BYTES;
      copy_rows(to, left + static_cast<uint64>(next) * SLAB_BYTES, TILE_ROWS, row_bytes);
      copy_rows(to + TILE_ROWS * SLAB_BYTES, right + static_cast<uint64>(next) * SLAB_BYTES, TILE, row_bytes);
    }
    copy_commit();
    group_wait<1>();
    stage = stage + 1u == STAGES ? 0u : stage + 1u;
    fill = fill + 1u == STAGES ? 0u : fill + 1u;
  }
  group_wait<0>();
  settle(sums);
#pragma unroll
  for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32 row = row0 + group * 64u + warp * 16u + lane / 4u + half * 8u;
      const uint32 column = column0 + j * 8u + lane % 4u * 2u;
      store_pair(c, row, column, n, sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]);
    }
}
)cuda";

}  // namespace furlong::program::linear
