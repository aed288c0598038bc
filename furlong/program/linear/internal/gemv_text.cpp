// CUDA text of the matrix-vector product. Constants in capitals come before it (emit_gemv.cpp).
#include "furlong/program/linear/internal/texts.h"

namespace furlong::program::linear {

// What every text of the product begins with.
const std::string_view gemv_common_text = R"cuda(
typedef unsigned char uint8;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// A block of Q8_0 as it is stored: one f16 scale, then 32 weights in int8.
#define BLOCK_WEIGHTS 32u
#define BLOCK_BYTES 34u

__device__ __forceinline__ uint32 blocks_of(uint32 k) { return (k + BLOCK_WEIGHTS - 1u) / BLOCK_WEIGHTS; }

// f16 to f32, exactly: the bits shifted to their places are the value times 2^-112.
__device__ __forceinline__ float half_value(uint32 half) {
  const uint32 bits = (half & 0x7fffu) << 13;
  const float magnitude = (half & 0x7c00u) == 0x7c00u ? __uint_as_float(bits | 0x7f800000u)
                                                      : __uint_as_float(bits) * __uint_as_float(0x77800000u);
  return (half & 0x8000u) != 0u ? -magnitude : magnitude;
}

// A weight of the stored matrix; what stands beyond k in a row's last block counts as 0.
__device__ __forceinline__ uint32 stored_weight(const uint8* block, uint32 at, uint32 first, uint32 k) {
  return first + at < k ? block[2u + at] : 0u;
}

__device__ __forceinline__ uint32 stored_scale(const uint8* block) {
  return block[0] | static_cast<uint32>(block[1]) << 8;
}

// One block of 32 activations by one warp, a lane each: x = magnitude * (128 * high + low) / STEPS. A block with
// a value that is not finite gets a magnitude that is not a number, so that its products are none either.
struct Quantised {
  int high, low;
  float magnitude;
};

__device__ __forceinline__ Quantised quantise(float x) {
  const float size = fabsf(x);
  float largest = size;
  for (int step = 16; step > 0; step >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  const bool finite = __all_sync(0xffffffffu, size <= 3.402823466e38f);
  Quantised result;
  result.magnitude = finite ? largest : __uint_as_float(0x7fc00000u);
  const int value = finite && largest > 0.0f ? __float2int_rn(x / largest * STEPS) : 0;
#if TWO_WORDS
  result.high = (value + 64) >> 7;
  result.low = value - result.high * 128;
#else
  result.high = value;
  result.low = 0;
#endif
  return result;
}
)cuda";

// Rows one after another, quants and scales in planes of their own.
const std::string_view gemv_rows_layout_text = R"cuda(
// Bytes of one copy's planes: n rows of quants, then n rows of scales.
__device__ __forceinline__ uint64 quant_bytes(uint32 n, uint32 k) {
  return static_cast<uint64>(n) * blocks_of(k) * BLOCK_WEIGHTS;
}
__device__ __forceinline__ uint64 copy_bytes(uint32 n, uint32 k) {
  return quant_bytes(n, k) + (static_cast<uint64>(n) * blocks_of(k) * 2u + 15u) / 16u * 16u;
}

// A thread writes four weights.
extern "C" __global__ void gemv_split(const uint8* weights, uint8* planes, uint32 n, uint32 k, uint32 copies) {
  const uint32 blocks = blocks_of(k);
  const uint64 words = static_cast<uint64>(copies) * n * blocks * 8u;
  for (uint64 i = static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += static_cast<uint64>(gridDim.x) * blockDim.x) {
    const uint32 word = static_cast<uint32>(i % 8u);
    const uint64 block = i / 8u;
    const uint64 in_copy = block % (static_cast<uint64>(n) * blocks);
    const uint8* stored = weights + block * BLOCK_BYTES;
    const uint32 first = static_cast<uint32>(in_copy % blocks) * BLOCK_WEIGHTS;
    uint8* copy = planes + block / (static_cast<uint64>(n) * blocks) * copy_bytes(n, k);
    uint32 packed = 0u;
    for (uint32 j = 0u; j < 4u; ++j) packed |= stored_weight(stored, word * 4u + j, first, k) << (8u * j);
    reinterpret_cast<uint32*>(copy)[in_copy * 8u + word] = packed;
    if (word == 0u)
      reinterpret_cast<unsigned short*>(copy + quant_bytes(n, k))[in_copy] =
          static_cast<unsigned short>(stored_scale(stored));
  }
}
)cuda";

const std::string_view gemv_rows_words_text = R"cuda(
// What a lane reads of a row at a step.
#if WIDE
typedef int4 Words;
#define WORDS 4
__device__ __forceinline__ Words zero_words() { return make_int4(0, 0, 0, 0); }
#else
typedef int Words;
#define WORDS 1
__device__ __forceinline__ Words zero_words() { return 0; }
#endif
)cuda";

const std::string_view gemv_rows_int_text = R"cuda(
// High words of all columns, low words, then one magnitude a block; a column has whole blocks, the rest is 0.
extern "C" __global__ void gemv_activations(const float* x, uint8* activations, uint32 k) {
  const uint32 blocks = blocks_of(k);
  const uint32 unit = (blockIdx.x * blockDim.x + threadIdx.x) / 32u;
  const uint32 lane = threadIdx.x % 32u;
  if (unit >= blocks * BATCH) return;
  const uint32 column = unit / blocks, at = unit % blocks * BLOCK_WEIGHTS + lane;
  const Quantised q = quantise(at < k ? x[static_cast<uint64>(column) * k + at] : 0.0f);
  const uint64 plane = static_cast<uint64>(BATCH) * blocks * BLOCK_WEIGHTS;
  const uint64 place = static_cast<uint64>(unit) * BLOCK_WEIGHTS + lane;
  activations[place] = static_cast<uint8>(q.high);
#if TWO_WORDS
  activations[plane + place] = static_cast<uint8>(q.low);
#endif
  if (lane == 0u) reinterpret_cast<float*>(activations + plane * (TWO_WORDS + 1u))[unit] = q.magnitude;
}

#if WIDE
__device__ __forceinline__ int dot(Words a, Words b) {
  return __dp4a(a.w, b.w, __dp4a(a.z, b.z, __dp4a(a.y, b.y, __dp4a(a.x, b.x, 0))));
}
#else
__device__ __forceinline__ int dot(Words a, Words b) { return __dp4a(a, b, 0); }
#endif
typedef float RowSum;
)cuda";

const std::string_view gemv_rows_float_text = R"cuda(
#if WIDE
__device__ __forceinline__ int word_of(const Words& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}
#else
__device__ __forceinline__ int word_of(const Words& words, int) { return words; }
#endif

// The activations as they are, in double: a column is steps of 32 lanes' weights, the lanes' first ones beside each
// other, then their second ones; the rest is 0.
#define STEP_WEIGHTS (128u * WORDS)
extern "C" __global__ void gemv_activations(const float* x, uint8* activations, uint32 k) {
  const uint32 steps = (blocks_of(k) * BLOCK_WEIGHTS + STEP_WEIGHTS - 1u) / STEP_WEIGHTS;
  const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= steps * STEP_WEIGHTS * BATCH) return;
  const uint32 column = i / (steps * STEP_WEIGHTS), in_column = i % (steps * STEP_WEIGHTS);
  const uint32 in_step = in_column % STEP_WEIGHTS;
  const uint32 at = in_column - in_step + in_step % 32u * (4u * WORDS) + in_step / 32u;
  reinterpret_cast<double*>(activations)[i] = at < k ? x[static_cast<uint64>(column) * k + at] : 0.0f;
}

// int8 to double by its place in the mantissa of 2^52: no conversion instruction.
__device__ __forceinline__ double weight_value(int word, int byte) {
  const int biased = ((word >> (8 * byte)) & 255) ^ 128;
  return __hiloint2double(0x43300000, biased) - (4503599627370496.0 + 128.0);
}
typedef double RowSum;
)cuda";

// The kernel of rows, around what it does with the weights of a step.
const std::string_view gemv_rows_begin_text = R"cuda(
// A warp has ROWS rows; a lane reads WORDS words of each at a step, UNROLL steps are in flight.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gemv_rows(const uint8* planes, const uint8* activations, float* out, uint32 n, uint32 k, uint32 copy) {
  const uint32 lane = threadIdx.x % 32u;
  const uint32 row0 = (blockIdx.x * WARPS + threadIdx.x / 32u) * ROWS;
  if (row0 >= n) return;
  const uint32 blocks = blocks_of(k), width = blocks * BLOCK_WEIGHTS;
  const uint8* quants = planes + copy * copy_bytes(n, k);
  const unsigned short* scales = reinterpret_cast<const unsigned short*>(quants + quant_bytes(n, k));
  uint64 rows[ROWS];
  for (int r = 0; r < ROWS; ++r) rows[r] = min(row0 + r, n - 1u);
  RowSum sums[ROWS][BATCH] = {};
  const uint32 steps = (width + 128u * WORDS - 1u) / (128u * WORDS);
  const uint32 share = (steps + SPLIT_K - 1u) / SPLIT_K;
  const uint32 end = min(steps, (blockIdx.y + 1u) * share);
  for (uint32 step = blockIdx.y * share; step < end; step += UNROLL) {
    Words weights[UNROLL][ROWS];
    uint32 scale[UNROLL][ROWS];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const uint32 at = (step + u) * (128u * WORDS) + lane * (4u * WORDS);
      const bool inside = step + u < end && at < width;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        weights[u][r] = inside ? __ldcs(reinterpret_cast<const Words*>(quants + rows[r] * width + at)) : zero_words();
        scale[u][r] = inside ? __ldg(scales + rows[r] * blocks + at / BLOCK_WEIGHTS) : 0u;
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const uint32 at = (step + u) * (128u * WORDS) + lane * (4u * WORDS);
      if (step + u >= end || at >= width) continue;
)cuda";

const std::string_view gemv_rows_int_body_text = R"cuda(
      const uint64 plane = static_cast<uint64>(BATCH) * width;
      const float* magnitudes = reinterpret_cast<const float*>(activations + plane * (TWO_WORDS + 1u));
      float scaled[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) scaled[r] = half_value(scale[u][r]) * (1.0f / STEPS);
#pragma unroll
      for (int column = 0; column < BATCH; ++column) {
        const uint64 place = static_cast<uint64>(column) * width + at;
        const Words high = __ldg(reinterpret_cast<const Words*>(activations + place));
#if TWO_WORDS
        const Words low = __ldg(reinterpret_cast<const Words*>(activations + plane + place));
#endif
        const float magnitude = __ldg(magnitudes + column * blocks + at / BLOCK_WEIGHTS);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          int sum = dot(weights[u][r], high);
#if TWO_WORDS
          sum = sum * 128 + dot(weights[u][r], low);
#endif
          // In this order neither a small scale nor a small magnitude is lost before it meets the sum.
          sums[r][column] += static_cast<float>(sum) * scaled[r] * magnitude;
        }
      }
)cuda";

const std::string_view gemv_rows_float_body_text = R"cuda(
      const double* x = reinterpret_cast<const double*>(activations);
#pragma unroll
      for (int column = 0; column < BATCH; ++column) {
        const double* xs = x + (static_cast<uint64>(column) * steps + step + u) * STEP_WEIGHTS + lane;
        double part[ROWS] = {};
#pragma unroll
        for (int i = 0; i < WORDS * 4; ++i) {
          const double value = __ldg(xs + i * 32);
#pragma unroll
          for (int r = 0; r < ROWS; ++r) part[r] += weight_value(word_of(weights[u][r], i / 4), i % 4) * value;
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sums[r][column] += part[r] * half_value(scale[u][r]);
      }
)cuda";

const std::string_view gemv_rows_end_text = R"cuda(
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int column = 0; column < BATCH; ++column) {
      RowSum sum = sums[r][column];
      for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (lane == 0u && row0 + r < n) OUTPUT(out, copy, column, row0 + r, n) = sum;
    }
  }
}
)cuda";

// Tiles of 16 rows in the order in which the matrix instruction wants them.
const std::string_view gemv_tiles_text = R"cuda(
// A tile of 16 rows is a chain of slabs of 8 blocks (256 weights a row): for each block 32 lanes' 16 bytes as the
// instruction takes them, then 16 rows of 8 scales.
#define SLAB_BLOCKS 8u
#define SLAB_BYTES (SLAB_BLOCKS * 512u + 256u)

__device__ __forceinline__ uint32 slabs_of(uint32 k) { return (blocks_of(k) + SLAB_BLOCKS - 1u) / SLAB_BLOCKS; }
__device__ __forceinline__ uint64 copy_bytes(uint32 n, uint32 k) {
  return static_cast<uint64>((n + 15u) / 16u) * slabs_of(k) * SLAB_BYTES;
}

// A thread writes one word: four weights of one row, or two scales.
extern "C" __global__ void gemv_split(const uint8* weights, uint8* planes, uint32 n, uint32 k, uint32 copies) {
  const uint32 blocks = blocks_of(k), slabs = slabs_of(k), tiles = (n + 15u) / 16u;
  const uint64 words = static_cast<uint64>(copies) * tiles * slabs * (SLAB_BYTES / 4u);
  for (uint64 i = static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += static_cast<uint64>(gridDim.x) * blockDim.x) {
    const uint32 word = static_cast<uint32>(i % (SLAB_BYTES / 4u));
    const uint64 slab_of_all = i / (SLAB_BYTES / 4u);
    const uint32 slab = static_cast<uint32>(slab_of_all % slabs);
    const uint64 tile_of_all = slab_of_all / slabs;
    const uint32 tile = static_cast<uint32>(tile_of_all % tiles);
    const uint8* copy = weights + tile_of_all / tiles * n * blocks * BLOCK_BYTES;
    uint32 packed = 0u;
    if (word < SLAB_BLOCKS * 128u) {
      const uint32 lane = word / 4u % 32u, part = word % 4u;
      const uint32 row = tile * 16u + lane / 4u + (part & 1u) * 8u;
      const uint32 block = slab * SLAB_BLOCKS + word / 128u;
      const uint32 at = lane % 4u * 4u + (part >> 1) * 16u;
      if (row < n && block < blocks) {
        const uint8* stored = copy + (static_cast<uint64>(row) * blocks + block) * BLOCK_BYTES;
        for (uint32 j = 0u; j < 4u; ++j)
          packed |= stored_weight(stored, at + j, block * BLOCK_WEIGHTS, k) << (8u * j);
      }
    } else {
      const uint32 at = word - SLAB_BLOCKS * 128u;
      const uint32 row = tile * 16u + at / 4u;
      for (uint32 j = 0u; j < 2u; ++j) {
        const uint32 block = slab * SLAB_BLOCKS + at % 4u * 2u + j;
        if (row < n && block < blocks)
          packed |= stored_scale(copy + (static_cast<uint64>(row) * blocks + block) * BLOCK_BYTES) << (16u * j);
      }
    }
    reinterpret_cast<uint32*>(planes)[i] = packed;
  }
}

// For each block and column four lanes' words, as the instruction takes them; then 8 magnitudes a block.
#define ACTIVATION_WORDS (2u * (TWO_WORDS + 1u))
extern "C" __global__ void gemv_activations(const float* x, uint8* activations, uint32 k) {
  const uint32 blocks = slabs_of(k) * SLAB_BLOCKS;
  const uint32 unit = (blockIdx.x * blockDim.x + threadIdx.x) / 32u;
  const uint32 lane = threadIdx.x % 32u;
  if (unit >= blocks * 8u) return;
  const uint32 block = unit / 8u, column = unit % 8u, at = block * BLOCK_WEIGHTS + lane;
  float* magnitudes = reinterpret_cast<float*>(activations + static_cast<uint64>(blocks) * BATCH * ACTIVATION_WORDS * 16u);
  if (column >= BATCH) {  // its products are not used, but must not be lost numbers
    if (lane == 0u) magnitudes[block * 8u + column] = 0.0f;
    return;
  }
  const Quantised q = quantise(at < k ? x[static_cast<uint64>(column) * k + at] : 0.0f);
  uint8* words = activations + (static_cast<uint64>(block) * BATCH + column) * ACTIVATION_WORDS * 16u +
                 lane % 16u / 4u * (ACTIVATION_WORDS * 4u) + lane / 16u * 4u + lane % 4u;
  words[0] = static_cast<uint8>(q.high);
#if TWO_WORDS
  words[8] = static_cast<uint8>(q.low);
#endif
  if (lane == 0u) magnitudes[block * 8u + column] = q.magnitude;
}

struct Slab {
  uint4 quants[ROWS][SLAB_BLOCKS];
  uint4 scales[ROWS][2];
};

// `from` is the slab of the block's first tile; tiles after the `last` are the last again, and are not written.
__device__ __forceinline__ void load_slab(Slab& slab, const uint8* from, uint64 tile_bytes, uint32 last,
                                                 uint32 lane) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const uint8* tile = from + min(static_cast<uint32>(r), last) * tile_bytes;
#pragma unroll
    for (int b = 0; b < static_cast<int>(SLAB_BLOCKS); ++b)
      slab.quants[r][b] = load_once(reinterpret_cast<const uint4*>(tile + b * 512u) + lane);
    slab.scales[r][0] = load_once(reinterpret_cast<const uint4*>(tile + SLAB_BLOCKS * 512u) + lane / 4u);
    slab.scales[r][1] = load_once(reinterpret_cast<const uint4*>(tile + SLAB_BLOCKS * 512u) + lane / 4u + 8u);
  }
}

__device__ __forceinline__ uint32 half_at(const uint4& words, int i) {
  const uint32 word = i / 2 == 0 ? words.x : i / 2 == 1 ? words.y : i / 2 == 2 ? words.z : words.w;
  return i % 2 == 0 ? word & 0xffffu : word >> 16;
}

__device__ __forceinline__ void add_slab(const Slab& slab, const uint8* activations, const float* magnitudes,
                                                uint32 first_block, uint32 lane, float (&sums)[ROWS][4]) {
#pragma unroll
  for (int b = 0; b < static_cast<int>(SLAB_BLOCKS); ++b) {
    const uint32 block = first_block + b;
    uint32 high[2] = {0u, 0u};
#if TWO_WORDS
    uint32 low[2] = {0u, 0u};
#endif
    if (BATCH == 8 || lane / 4u < BATCH) {
      const uint8* words = activations +
                           ((static_cast<uint64>(block) * BATCH + lane / 4u) * 4u + lane % 4u) * (ACTIVATION_WORDS * 4u);
#if TWO_WORDS
      const uint4 all = __ldg(reinterpret_cast<const uint4*>(words));
      high[0] = all.x, high[1] = all.y, low[0] = all.z, low[1] = all.w;
#else
      const uint2 all = __ldg(reinterpret_cast<const uint2*>(words));
      high[0] = all.x, high[1] = all.y;
#endif
    }
    const float2 magnitude = __ldg(reinterpret_cast<const float2*>(magnitudes + block * 8u) + lane % 4u);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const uint4& quants = slab.quants[r][b];
      int sum[4] = {0, 0, 0, 0};
      mma_s8(sum, quants.x, quants.y, quants.z, quants.w, high[0], high[1]);
#if TWO_WORDS
      int fine[4] = {0, 0, 0, 0};
      mma_s8(fine, quants.x, quants.y, quants.z, quants.w, low[0], low[1]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = sum[i] * 128 + fine[i];
#endif
      // In this order neither a small scale nor a small magnitude is lost before it meets the sum.
      const float upper = half_f32(half_at(slab.scales[r][0], b)) * (1.0f / STEPS);
      const float lower = half_f32(half_at(slab.scales[r][1], b)) * (1.0f / STEPS);
      sums[r][0] += static_cast<float>(sum[0]) * upper * magnitude.x;
      sums[r][1] += static_cast<float>(sum[1]) * upper * magnitude.y;
      sums[r][2] += static_cast<float>(sum[2]) * lower * magnitude.x;
      sums[r][3] += static_cast<float>(sum[3]) * lower * magnitude.y;
    }
  }
}

// A block has ROWS tiles; its warps take their slabs in turn, UNROLL of them in flight each.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    gemv_tiles(const uint8* planes, const uint8* activations, float* out, uint32 n, uint32 k, uint32 copy) {
  __shared__ float parts[WARPS][ROWS][4][32];
  const uint32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  const uint32 slabs = slabs_of(k), tiles = (n + 15u) / 16u;
  const uint32 tile0 = blockIdx.x * ROWS;
  const uint64 tile_bytes = static_cast<uint64>(slabs) * SLAB_BYTES;
  const uint32 last = tiles - 1u - tile0;
  const uint8* own = planes + copy * copy_bytes(n, k) + tile0 * tile_bytes;
  const float* magnitudes = reinterpret_cast<const float*>(
      activations + static_cast<uint64>(slabs) * SLAB_BLOCKS * BATCH * ACTIVATION_WORDS * 16u);
  const uint32 share = (slabs + SPLIT_K - 1u) / SPLIT_K;
  const uint32 end = min(slabs, (blockIdx.y + 1u) * share);
  float sums[ROWS][4] = {};
  Slab ahead[UNROLL];
  uint32 slab = blockIdx.y * share + warp;
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (slab + u * WARPS < end)
      load_slab(ahead[u], own + static_cast<uint64>(slab + u * WARPS) * SLAB_BYTES, tile_bytes, last, lane);
  while (slab < end) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (slab < end) add_slab(ahead[u], activations, magnitudes, slab * SLAB_BLOCKS, lane, sums);
      if (slab + UNROLL * WARPS < end)
        load_slab(ahead[u], own + static_cast<uint64>(slab + UNROLL * WARPS) * SLAB_BYTES, tile_bytes, last, lane);
      slab += WARPS;
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int i = 0; i < 4; ++i) parts[warp][r][i][lane] = sums[r][i];
  __syncthreads();
  for (uint32 i = threadIdx.x; i < ROWS * 128u; i += WARPS * 32u) {
    const uint32 r = i / 128u, part = i / 32u % 4u, from = i % 32u;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += parts[w][r][part][from];
    const uint32 row = (tile0 + r) * 16u + from / 4u + part / 2u * 8u;
    const uint32 column = from % 4u * 2u + part % 2u;
    if (row < n && column < BATCH) OUTPUT(out, copy, column, row, n) = sum;
  }
}
)cuda";

const std::string_view gemv_sum_text = R"cuda(
// The parts of a split k, in order, so that the same inputs give the same bits.
extern "C" __global__ void gemv_sum(const float* parts, float* y, uint32 n, uint32 copy) {
  const uint64 i = static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<uint64>(n) * BATCH) return;
  float sum = 0.0f;
  for (uint32 part = 0u; part < SPLIT_K; ++part) sum += parts[static_cast<uint64>(part) * n * BATCH + i];
  y[static_cast<uint64>(copy) * n * BATCH + i] = sum;
}
)cuda";

}  // namespace furlong::program::linear
