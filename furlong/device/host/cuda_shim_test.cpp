// CUDA texts run through the host shim, against plain references.
#include "furlong/device/host/internal/cuda_shim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "furlong/base/random.h"
#include "furlong/device/host/host.h"

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

template <class T>
Bytes scalar(T value) {
  Bytes bytes(sizeof(T));
  store_le(bytes.data(), value);
  return bytes;
}

CompileRequest request(std::string source, std::string entry = "k") {
  CompileRequest made;
  made.language = Language::cuda;
  made.name = "test";
  made.source = std::move(source);
  made.source_name = "mine.cu";
  made.entries = {std::move(entry)};
  return made;
}

class CudaShim : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = driver_->open(0);
    if (!device && device.error().code() == Code::unavailable) GTEST_SKIP() << device.error().text();
    ASSERT_TRUE(device) << device.error().text();
    device_ = std::move(*device);
  }

  template <class T>
  std::unique_ptr<Buffer> buffer(const std::vector<T>& values) {
    auto made = device_->allocate(values.size() * sizeof(T));
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_TRUE(
        (*made)->write(0, {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)}));
    return std::move(*made);
  }
  template <class T>
  static std::vector<T> contents(Buffer& from) {
    std::vector<T> values(from.size() / sizeof(T));
    EXPECT_TRUE(from.read(0, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)}));
    return values;
  }
  /// Compiles and runs once; the shape and arguments are those of the launch.
  Status run(const CompileRequest& made, Launch launch) {
    FURLONG_TRY(const auto module, device_->compile(made));
    launch.module = module.get();
    launch.entry = made.entries.front();
    return device_->launch(launch);
  }
  static Launch shape(std::uint64_t grid, std::uint64_t block, std::vector<Argument> arguments,
                      std::uint64_t shared = 0) {
    Launch launch;
    launch.grid = {grid, 1, 1};
    launch.block = {block, 1, 1};
    launch.shared_bytes = shared;
    launch.arguments = std::move(arguments);
    return launch;
  }

  std::unique_ptr<Driver> driver_ = make_host_driver();
  std::unique_ptr<Device> device_;
};

#define ASSERT_RAN(status)                    \
  do {                                        \
    const Status ran_ = (status);             \
    ASSERT_TRUE(ran_) << ran_.error().text(); \
  } while (false)

TEST_F(CudaShim, RunsAPlainKernelOverEveryThread) {
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 1.0f);
  std::iota(y.begin(), y.end(), 3.0f);
  const auto bx = buffer(x);
  const auto by = buffer(y);
  const CompileRequest made = request(R"(
extern "C" __global__ void __launch_bounds__(64) saxpy(float a, const float* __restrict__ x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  #pragma unroll 4
  for (int once = 0; once < 1; ++once) y[i] = fmaf(a, __ldg(x + i), y[i]);
})",
                                      "saxpy");
  EXPECT_FALSE(host::scan_cuda_text(made)->waits);
  ASSERT_RAN(
      run(made,
          shape(16, 64, {scalar(2.0f), BufferArgument{bx.get()}, BufferArgument{by.get()}, scalar(1000u)})));
  const auto out = contents<float>(*by);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 2.0f * x[i] + y[i]);
}

TEST_F(CudaShim, ReducesWithSharedMemoryAndBarriers) {
  Random random(3);
  std::vector<unsigned> in(50 * 192);
  for (unsigned& value : in) value = static_cast<unsigned>(random.next());
  std::vector<unsigned> wanted(50);
  for (std::size_t i = 0; i < in.size(); ++i) wanted[i / 192] += in[i];
  const auto from = buffer(in);
  const auto to = buffer(std::vector<unsigned>(50));
  ASSERT_RAN(run(request(R"(
__global__ void k(const unsigned* in, unsigned* out) {
  __shared__ unsigned part[192];
  const unsigned t = threadIdx.x;
  part[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned live = 192; live > 1; live = (live + 1) / 2) {
    const unsigned half = (live + 1) / 2;
    const unsigned other = t + half < live ? part[t + half] : 0;
    __syncthreads();
    if (t < half) part[t] += other;
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
})"),
                 shape(50, 192, {BufferArgument{from.get()}, BufferArgument{to.get()}})));
  EXPECT_EQ(contents<unsigned>(*to), wanted);
}

TEST_F(CudaShim, ReducesWithDynamicSharedMemory) {
  std::vector<float> in(64 * 8);
  std::iota(in.begin(), in.end(), 0.0f);
  const auto from = buffer(in);
  const auto to = buffer(std::vector<float>(8));
  ASSERT_RAN(run(request(R"(
template <int N>
__global__ void sum(const float* in, float* out) {
  extern __shared__ __align__(16) unsigned char
      raw[];
  float* part = (float*)raw;
  part[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (int i = 0; i < N; ++i) total += part[i];
  out[blockIdx.x] = total;
})",
                         "sum<64>"),
                 shape(8, 64, {BufferArgument{from.get()}, BufferArgument{to.get()}}, 64 * 4)));
  const auto out = contents<float>(*to);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(out[i], 64.0f * 64 * static_cast<float>(i) + 2016.0f);
}

TEST_F(CudaShim, TransposesThroughAPaddedTile) {
  const unsigned rows = 96, columns = 64;
  std::vector<unsigned> in(rows * columns);
  std::iota(in.begin(), in.end(), 0u);
  const auto from = buffer(in);
  const auto to = buffer(std::vector<unsigned>(in.size()));
  Launch launch =
      shape(1, 1, {BufferArgument{from.get()}, BufferArgument{to.get()}, scalar(rows), scalar(columns)});
  launch.grid = {columns / 32, rows / 32, 1};
  launch.block = {32, 8, 1};
  ASSERT_RAN(run(request(R"(
__global__ void k(const unsigned* in, unsigned* out, unsigned rows, unsigned columns) {
  __shared__ unsigned tile[32][33];
  unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (unsigned j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (unsigned j = 0; j < 32; j += 8) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
})"),
                 launch));
  const auto out = contents<unsigned>(*to);
  for (unsigned r = 0; r < rows; ++r) {
    for (unsigned c = 0; c < columns; ++c) ASSERT_EQ(out[c * rows + r], in[r * columns + c]);
  }
}

TEST_F(CudaShim, CountsAHistogramWithAtomics) {
  Random random(5);
  std::vector<unsigned> in(20000), wanted(64);
  for (unsigned& value : in) value = static_cast<unsigned>(random.below(64 * 64)) / 64;
  for (unsigned value : in) ++wanted[value];
  const auto from = buffer(in);
  const auto to = buffer(std::vector<unsigned>(64));
  ASSERT_RAN(run(request(R"(
__global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  __shared__ unsigned mine[64];
  if (threadIdx.x < 64) mine[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[in[i]], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(out + threadIdx.x, mine[threadIdx.x]);
})"),
                 shape(9, 96, {BufferArgument{from.get()}, BufferArgument{to.get()}, scalar(20000u)})));
  EXPECT_EQ(contents<unsigned>(*to), wanted);
}

TEST_F(CudaShim, EveryAtomicDoesWhatItsNameSays) {
  std::vector<unsigned> out(16, 0);
  out[2] = 1000;
  out[4] = ~0u;
  const auto to = buffer(out);
  const auto floats = buffer(std::vector<float>(1));
  const auto wide = buffer(std::vector<std::uint64_t>(2));
  ASSERT_RAN(run(
      request(R"(
__global__ void k(unsigned* out, float* sum, unsigned long long* wide) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out + 0, 2u);
  atomicOr(out + 1, 1u << (i & 31));
  atomicMin(out + 2, i + 7);
  atomicMax(out + 3, i);
  atomicAnd(out + 4, ~(1u << (i & 7)));
  atomicXor(out + 5, i);
  atomicInc(out + 6, 9);
  atomicDec(out + 7, 9);
  atomicSub((int*)out + 8, 3);
  for (unsigned old = out[9], seen; (seen = atomicCAS(out + 9, old, old + 5)) != old; old = seen) {}
  if (i == 3) atomicExch(out + 10, 77);
  atomicMin((int*)out + 11, -(int)i);
  atomicAdd(sum, 0.5f);
  atomicAdd(wide, 0x100000001ull);
  atomicMax(wide + 1, (unsigned long long)i << 40);
})"),
      shape(4, 64, {BufferArgument{to.get()}, BufferArgument{floats.get()}, BufferArgument{wide.get()}})));
  const auto got = contents<unsigned>(*to);
  unsigned xored = 0;
  for (unsigned i = 0; i < 256; ++i) xored ^= i;
  EXPECT_EQ(got[0], 512u);
  EXPECT_EQ(got[1], ~0u);
  EXPECT_EQ(got[2], 7u);
  EXPECT_EQ(got[3], 255u);
  EXPECT_EQ(got[4], ~0xffu);
  EXPECT_EQ(got[5], xored);
  EXPECT_EQ(got[6], 256u % 10);
  EXPECT_EQ(got[7], (10 - 256u % 10) % 10);
  EXPECT_EQ(static_cast<int>(got[8]), -768);
  EXPECT_EQ(got[9], 1280u);
  EXPECT_EQ(got[10], 77u);
  EXPECT_EQ(static_cast<int>(got[11]), -255);
  EXPECT_EQ(contents<float>(*floats)[0], 128.0f);
  EXPECT_EQ(contents<std::uint64_t>(*wide), (std::vector<std::uint64_t>{0x100000001ull * 256, 255ull << 40}));
}

TEST_F(CudaShim, ShufflesLikeTheGuideSays) {
  // Block of 48: the second warp has 16 lanes.
  const auto to = buffer(std::vector<unsigned>(48 * 8));
  ASSERT_RAN(run(request(R"(
__global__ void k(unsigned* out) {
  const unsigned t = threadIdx.x, full = 0xffffffffu;
  unsigned* mine = out + 8 * t;
  mine[0] = __shfl_sync(full, t, 5);
  mine[1] = __shfl_sync(full, t, 3, 8);
  mine[2] = __shfl_up_sync(full, t, 2);
  mine[3] = __shfl_down_sync(full, t, 3, 16);
  mine[4] = __shfl_xor_sync(full, t, 1);
  mine[5] = __ballot_sync(full, t % 3 == 0);
  mine[6] = __any_sync(full, t == 40) * 2 + __all_sync(full, t < 32);
  const double wide = __shfl_sync(full, t * 0.5, 2);
  mine[7] = (unsigned)(wide * 100);
})"),
                 shape(1, 48, {BufferArgument{to.get()}})));
  const auto out = contents<unsigned>(*to);
  for (unsigned t = 0; t < 48; ++t) {
    const unsigned base = t & ~31u, lane = t & 31, lanes = base == 0 ? 32 : 16;
    unsigned ballot = 0;
    for (unsigned i = 0; i < lanes; ++i) ballot |= (base + i) % 3 == 0 ? 1u << i : 0;
    const unsigned* mine = &out[8 * t];
    EXPECT_EQ(mine[0], base + 5);
    EXPECT_EQ(mine[1], base + (lane & ~7u) + 3);
    EXPECT_EQ(mine[2], lane < 2 ? t : t - 2);
    EXPECT_EQ(mine[3], (lane & 15) + 3 < 16 ? t + 3 : t);
    EXPECT_EQ(mine[4], t ^ 1);
    EXPECT_EQ(mine[5], ballot);
    EXPECT_EQ(mine[6], base == 0 ? 1u : 2u);
    EXPECT_EQ(mine[7], (base + 2) * 50);
  }
}

TEST_F(CudaShim, WarpReductionsAndPartialMasksAgree) {
  const auto to = buffer(std::vector<unsigned>(64 * 4));
  ASSERT_RAN(run(request(R"(
__device__ __forceinline__ unsigned sum(unsigned v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
  return v;
}
__global__ void k(unsigned* out) {
  const unsigned t = threadIdx.x;
  unsigned* mine = out + 4 * t;
  mine[0] = __shfl_sync(0xffffffff, sum(t), 0);
  mine[1] = __reduce_add_sync(0xffffffff, t);
  // The two halves of a warp go separate ways with masks of their own.
  if ((t & 31) < 16) mine[2] = __reduce_max_sync(0x0000ffffu, t);
  else { __syncwarp(0xffff0000u); mine[2] = __reduce_max_sync(0xffff0000u, t + 1000); }
  __syncwarp();
  mine[3] = __match_any_sync(0xffffffff, t % 4);
})"),
                 shape(1, 64, {BufferArgument{to.get()}})));
  const auto out = contents<unsigned>(*to);
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned base = t & ~31u;
    EXPECT_EQ(out[4 * t], base * 32 + 496);
    EXPECT_EQ(out[4 * t + 1], base * 32 + 496);
    EXPECT_EQ(out[4 * t + 2], (t & 31) < 16 ? base + 15 : base + 31 + 1000);
    EXPECT_EQ(out[4 * t + 3], 0x11111111u << (t % 4));
  }
}

TEST_F(CudaShim, BarriersCountPredicatesAndForgetThreadsThatReturned) {
  const auto to = buffer(std::vector<int>(100 * 3));
  ASSERT_RAN(run(request(R"(
__global__ void k(int* out) {
  const int t = threadIdx.x;
  if (t >= 80) return;
  out[3 * t] = __syncthreads_count(t % 2);
  out[3 * t + 1] = __syncthreads_and(t < 80);
  out[3 * t + 2] = __syncthreads_or(t == 79);
})"),
                 shape(1, 100, {BufferArgument{to.get()}})));
  const auto out = contents<int>(*to);
  for (std::size_t t = 0; t < 80; ++t) {
    EXPECT_EQ(out[3 * t], 40);
    EXPECT_EQ(out[3 * t + 1], 1);
    EXPECT_EQ(out[3 * t + 2], 1);
  }
  EXPECT_EQ(out[240], 0);
}

TEST_F(CudaShim, ThreadsThatWaitAtDifferentPlacesAreAnErrorNotAHang) {
  const CompileRequest made = request(R"(
__global__ void k(int* out) {
  if (threadIdx.x == 0) __syncthreads();
  else out[0] = __shfl_sync(0xffffffff, 1, 0);
})");
  const auto to = buffer(std::vector<int>(1));
  for (int turn = 0; turn < 3; ++turn) {  // the abandoned fibers must not disturb the next launch
    const Status ran = run(made, shape(3, 64, {BufferArgument{to.get()}}));
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code(), Code::internal);
    EXPECT_THAT(ran.error().text(), HasSubstr("wait for each other"));
  }
}

TEST_F(CudaShim, HasSizeTWithoutAHeaderAndWithOne) {
  const auto to = buffer(std::vector<unsigned>(1));
  for (const char* first : {"", "#include <stddef.h>\n", "typedef decltype(sizeof 0) size_t;\n"}) {
    ASSERT_RAN(
        run(request(std::string(first) + "__global__ void k(unsigned* out) { out[0] += sizeof(size_t); }"),
            shape(1, 1, {BufferArgument{to.get()}})));
  }
  EXPECT_EQ(contents<unsigned>(*to)[0], 24u);
}

TEST_F(CudaShim, AnExceptionInAFiberIsAnError) {
  const Status ran = run(request("__global__ void k() { __syncthreads(); if (threadIdx.x == 5) throw 1; }"),
                         shape(2, 32, {}));
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().text(), HasSubstr("exception"));
}

// Every integer intrinsic against a slow and simple reference.
TEST_F(CudaShim, IntegerIntrinsicsAgreeWithPlainReferences) {
  const std::size_t n = 500;
  Random random(11);
  std::vector<std::uint64_t> in(n * 2);
  for (std::uint64_t& value : in) value = random.next() >> random.below(64);
  in[0] = in[1] = 0;
  in[2] = ~std::uint64_t{0};
  const auto from = buffer(in);
  const auto to = buffer(std::vector<std::uint64_t>(n * 16));
  ASSERT_RAN(run(request(R"(
__global__ void k(const unsigned long long* in, unsigned long long* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned long long a = in[2 * i], b = in[2 * i + 1];
  const unsigned x = (unsigned)a, y = (unsigned)b;
  unsigned long long* o = out + 16 * i;
  o[0] = __umulhi(x, y);
  o[1] = (unsigned)__mulhi((int)x, (int)y);
  o[2] = __umul64hi(a, b);
  o[3] = __popc(x) * 100 + __popcll(a);
  o[4] = __clz((int)x) * 100 + __clzll((long long)a);
  o[5] = __ffs((int)x) * 100 + __ffsll((long long)a);
  o[6] = __brev(x);
  o[7] = __brevll(a);
  o[8] = __funnelshift_l(x, y, i);
  o[9] = __funnelshift_r(x, y, i);
  o[10] = __byte_perm(x, y, 0x5140 + (i & 7));
  o[11] = (unsigned)__dp4a((int)x, (int)y, 5);
  o[12] = min(x, y) + (unsigned long long)max(x, y);
  o[13] = (unsigned long long)__mul64hi((long long)a, (long long)b);
  o[14] = __uhadd(x, y);
  o[15] = __usad(x, y, 3u);
})"),
                 shape(n / 50, 50, {BufferArgument{from.get()}, BufferArgument{to.get()}})));
  const auto out = contents<std::uint64_t>(*to);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t a = in[2 * i], b = in[2 * i + 1];
    const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
    const std::uint64_t* o = &out[16 * i];
    const auto bits = [](std::uint64_t v, int width, auto&& see) {
      for (int k = 0; k < width; ++k) see(k, v >> k & 1);
    };
    std::uint64_t pop32 = 0, pop64 = 0, lead32 = 32, lead64 = 64, first32 = 0, first64 = 0, rev32 = 0,
                  rev64 = 0;
    bits(x, 32, [&](int k, std::uint64_t bit) {
      pop32 += bit;
      rev32 |= bit << (31 - k);
      if (bit != 0) lead32 = 31 - static_cast<std::uint64_t>(k);
      if (bit != 0 && first32 == 0) first32 = static_cast<std::uint64_t>(k) + 1;
    });
    bits(a, 64, [&](int k, std::uint64_t bit) {
      pop64 += bit;
      rev64 |= bit << (63 - k);
      if (bit != 0) lead64 = 63 - static_cast<std::uint64_t>(k);
      if (bit != 0 && first64 == 0) first64 = static_cast<std::uint64_t>(k) + 1;
    });
    const std::uint64_t pair = std::uint64_t{y} << 32 | x;
    const unsigned shift = i % 32;
    std::uint32_t permuted = 0;
    for (unsigned k = 0; k < 4; ++k) {
      permuted |= static_cast<std::uint32_t>(pair >> 8 * ((0x5140 + (i & 7)) >> 4 * k & 7) & 0xff) << 8 * k;
    }
    std::int64_t dot = 5;
    for (unsigned k = 0; k < 4; ++k) {
      dot += static_cast<std::int8_t>(x >> 8 * k) * static_cast<std::int8_t>(y >> 8 * k);
    }
    __extension__ using Wide = __int128;
    __extension__ using Uwide = unsigned __int128;
    ASSERT_EQ(o[0], std::uint64_t{x} * y >> 32);
    ASSERT_EQ(o[1], static_cast<std::uint32_t>(
                        std::int64_t{static_cast<std::int32_t>(x)} * static_cast<std::int32_t>(y) >> 32));
    ASSERT_EQ(o[2], static_cast<std::uint64_t>(Uwide{a} * b >> 64));
    ASSERT_EQ(o[3], pop32 * 100 + pop64);
    ASSERT_EQ(o[4], lead32 * 100 + lead64);
    ASSERT_EQ(o[5], first32 * 100 + first64);
    ASSERT_EQ(o[6], rev32);
    ASSERT_EQ(o[7], rev64);
    ASSERT_EQ(o[8], static_cast<std::uint32_t>(shift == 0 ? y : y << shift | x >> (32 - shift)));
    ASSERT_EQ(o[9], static_cast<std::uint32_t>(shift == 0 ? x : x >> shift | y << (32 - shift)));
    ASSERT_EQ(o[10], permuted);
    ASSERT_EQ(o[11], static_cast<std::uint32_t>(dot));
    ASSERT_EQ(o[12], std::uint64_t{x} + y);
    ASSERT_EQ(o[13], static_cast<std::uint64_t>(
                         Wide{static_cast<std::int64_t>(a)} * static_cast<std::int64_t>(b) >> 64));
    ASSERT_EQ(o[14], (std::uint64_t{x} + y) / 2);
    ASSERT_EQ(o[15], static_cast<std::uint32_t>(std::max(x, y) - std::min(x, y) + 3));
  }
}

TEST_F(CudaShim, VectorTypesHaveTheLayoutOfTheCard) {
  const auto to = buffer(std::vector<unsigned>(64));
  ASSERT_RAN(run(request(R"(
typedef unsigned long long uint64_t;  // CUDA texts bring their own
typedef unsigned int uint32_t;
struct Pair { uint4 a; float2 b; };
__constant__ unsigned kTable[4] = {1, 2, 3, 4};
__device__ unsigned total;
__global__ void k(unsigned* out, Pair pair) {
  static_assert(sizeof(uint2) == 8 && alignof(uint2) == 8 && sizeof(int4) == 16 && alignof(int4) == 16, "");
  static_assert(sizeof(float3) == 12 && alignof(float3) == 4 && sizeof(uchar4) == 4 && alignof(uchar4) == 4, "");
  static_assert(sizeof(double2) == 16 && alignof(ulonglong2) == 16 && sizeof(uint64_t) == 8, "");
  reinterpret_cast<uint4*>(out)[0] = make_uint4(pair.a.w, pair.a.z, pair.a.y, pair.a.x);
  __stcs(reinterpret_cast<uint2*>(out) + 2, make_uint2(kTable[3], __float_as_uint(pair.b.y)));
  const uint4 back = __ldcg(reinterpret_cast<const uint4*>(out));
  const dim3 d = blockDim;
  const uint3 t = threadIdx;
  out[6] = back.x + d.x + t.x + gridDim.x;
  atomicAdd(&total, 3u);
  out[7] = total;
})"),
                 shape(1, 1, {BufferArgument{to.get()}, [] {
                                Bytes pair(32);
                                for (std::uint32_t i = 0; i < 4; ++i) store_le(pair.data() + 4 * i, 10 + i);
                                store_le(pair.data() + 20, 1.5f);
                                return pair;
                              }()})));
  const auto out = contents<unsigned>(*to);
  EXPECT_EQ(std::vector<unsigned>(out.begin(), out.begin() + 8),
            (std::vector<unsigned>{13, 12, 11, 10, 4, 0x3fc00000u, 15, 3}));
}

TEST_F(CudaShim, CompilerMessagesShowTheUsersFileAndLine) {
  const auto failed = device_->compile(
      request("__global__ void k(int* y) {\n  extern __shared__ int\n    s[];\n  s[0] = nonsense;\n}\n"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_THAT(failed.error().text(), HasSubstr("mine.cu:4"));
}

TEST_F(CudaShim, OnlyOptionsThatMeanTheSameArePassedOn) {
  CompileRequest made = request("");
  made.options = {"--gpu-architecture=sm_90",
                  "-maxrregcount=32",
                  "-DA=1",
                  "-I",
                  "/x",
                  "--std=c++17",
                  "-fmad=false",
                  "--use_fast_math",
                  "-O3"};
  const auto kept = host::with_host_options(made).options;
  EXPECT_EQ(std::vector<std::string>(kept.begin() + 3, kept.end()),
            (std::vector<std::string>{"-DA=1", "-I", "/x", "-std=c++17", "-O3"}));
}

TEST(CudaText, RefusesWhatTheShimCannotRunWithTheLine) {
  for (const auto& [text, line, word] :
       {std::tuple{"__global__ void k() {\n  asm volatile(\"bar.sync 0;\");\n}", ":2:3", "PTX"},
        std::tuple{"\n\nusing namespace nvcuda;", ":3:17", "matrix"},
        std::tuple{"extern __shared__ int s[];\n__global__ void k() {}", ":1:1", "inside the kernel"},
        std::tuple{"namespace a {\nextern __shared__ int s[];\n}", ":2:1", "inside the kernel"},
        std::tuple{"void k() { extern __shared__ int s; }", ":1:12", "TYPE NAME[]"}}) {
    const auto refused = host::scan_cuda_text(request(text));
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code(), Code::invalid);
    EXPECT_THAT(refused.error().text(), HasSubstr(std::string("mine.cu") + line));
    EXPECT_THAT(refused.error().text(), HasSubstr(word));
  }
}

TEST(CudaText, CommentsAndStringsSayNothing) {
  const auto text =
      host::scan_cuda_text(request("// asm, __syncthreads\n/* extern __shared__ int s[]; wmma */ const char* "
                                   "s = \"asm __shfl_sync\";\nint c = '\"';"));
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_FALSE(text->waits);
  EXPECT_THAT(text->source, HasSubstr("asm, __syncthreads"));
  EXPECT_TRUE(host::scan_cuda_text(request("void k() { __syncwarp(); }"))->waits);
  EXPECT_TRUE(host::scan_cuda_text(request("#include \"other.h\"\n"))->waits);
}

// Whatever the text, the scan ends, keeps the number of lines, and changes only dynamic shared memory.
TEST(CudaText, ScanningRandomTextKeepsItsLines) {
  const std::vector<std::string> pieces{"extern", " __shared__",
                                        " int",   " s",
                                        "[]",     ";",
                                        "{",      "}",
                                        "(",      ")",
                                        "\n",     "\"",
                                        "'",      "\\",
                                        "/*",     "*/",
                                        "//",     "__syncthreads",
                                        " ",      "x"};
  Random random(17);
  for (int round = 0; round < 3000; ++round) {
    std::string source;
    for (std::uint64_t i = random.below(30); i > 0; --i) source += pieces[random.below(pieces.size())];
    const auto text = host::scan_cuda_text(request(source));
    if (!text) {
      EXPECT_EQ(text.error().code(), Code::invalid);
      continue;
    }
    EXPECT_EQ(std::count(text->source.begin(), text->source.end(), '\n'),
              std::count(source.begin(), source.end(), '\n'))
        << source;
    if (text->source.find("furlong_dynamic_shared") == std::string::npos) {
      EXPECT_EQ(text->source, source);
    }
  }
}

}  // namespace
}  // namespace furlong::device
