// The declarations that CUDA text finds in place of NVIDIA's, as text. Meanings follow the CUDA C++
// Programming Guide and the CUDA Math API reference. No header is included: CUDA text may define uint64_t
// and the like for itself.

#include "furlong/device/host/internal/cuda_shim.h"

namespace furlong::device::host {
namespace {

constexpr std::string_view kLanguage = R"(
#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#ifndef __clang__
#define __builtin_assume(x) ((void)0)
#endif
#define __assume(x) ((void)0)

static thread_local furlong_cuda_state furlong_cuda;
#define threadIdx (furlong_cuda.thread)
#define blockIdx (furlong_cuda.block)
#define blockDim (furlong_cuda.block_dim)
#define gridDim (furlong_cuda.grid_dim)
#define warpSize 32

using size_t = decltype(sizeof 0);  // NVIDIA's compilers have it without a header
using uint3 = furlong_uint3;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }

struct furlong_dynamic_shared {
  template <class T> operator T*() const { return static_cast<T*>(furlong_cuda.shared); }
};

static inline const furlong_services& furlong_service() {
  return *static_cast<const furlong_services*>(furlong_cuda.services);
}

static inline int furlong_run_block(const furlong_block& block, void (*body)(void*), void* argument) {
  if (block.grid_x >> 32 || block.grid_y >> 32 || block.grid_z >> 32) return 2;
  furlong_cuda.block = {unsigned(block.x), unsigned(block.y), unsigned(block.z)};
  furlong_cuda.grid_dim = {unsigned(block.grid_x), unsigned(block.grid_y), unsigned(block.grid_z)};
  furlong_cuda.block_dim = {block.threads_x, block.threads_y, block.threads_z};
  furlong_cuda.shared = block.shared;
  furlong_cuda.services = block.services;
#if FURLONG_CUDA_WAITS
  return furlong_service().run_block(&furlong_cuda, body, argument);
#else
  for (unsigned z = 0; z < block.threads_z; ++z)
    for (unsigned y = 0; y < block.threads_y; ++y)
      for (unsigned x = 0; x < block.threads_x; ++x) {
        furlong_cuda.thread = {x, y, z};
        body(argument);
      }
  return 0;
#endif
}
)";

constexpr std::string_view kVectors = R"(
#define FURLONG_VECTORS(T, N, A2, A4)                                                        \
  struct N##1 { T x; };                                                                      \
  struct __attribute__((aligned(A2))) N##2 { T x, y; };                                      \
  struct __attribute__((aligned(A4))) N##4 { T x, y, z, w; };                                \
  static inline N##1 make_##N##1(T x) { return N##1{x}; }                                    \
  static inline N##2 make_##N##2(T x, T y) { return N##2{x, y}; }                            \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return N##4{x, y, z, w}; }
#define FURLONG_VECTOR3(T, N)                                                                \
  struct N##3 { T x, y, z; };                                                                \
  static inline N##3 make_##N##3(T x, T y, T z) { return N##3{x, y, z}; }
FURLONG_VECTORS(signed char, char, 2, 4)
FURLONG_VECTORS(unsigned char, uchar, 2, 4)
FURLONG_VECTORS(short, short, 4, 8)
FURLONG_VECTORS(unsigned short, ushort, 4, 8)
FURLONG_VECTORS(int, int, 8, 16)
FURLONG_VECTORS(unsigned, uint, 8, 16)
FURLONG_VECTORS(long, long, 16, 16)
FURLONG_VECTORS(unsigned long, ulong, 16, 16)
FURLONG_VECTORS(long long, longlong, 16, 16)
FURLONG_VECTORS(unsigned long long, ulonglong, 16, 16)
FURLONG_VECTORS(float, float, 8, 16)
FURLONG_VECTORS(double, double, 16, 16)
FURLONG_VECTOR3(signed char, char)
FURLONG_VECTOR3(unsigned char, uchar)
FURLONG_VECTOR3(short, short)
FURLONG_VECTOR3(unsigned short, ushort)
FURLONG_VECTOR3(int, int)
FURLONG_VECTOR3(long long, longlong)
FURLONG_VECTOR3(unsigned long long, ulonglong)
FURLONG_VECTOR3(float, float)
FURLONG_VECTOR3(double, double)
)";

constexpr std::string_view kIntegers = R"(
static inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
static inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline int __mul24(int a, int b) {
  return int((unsigned)(int((unsigned)a << 8) >> 8) * (unsigned)(int((unsigned)b << 8) >> 8));
}
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
static inline unsigned long long furlong_pair(unsigned lo, unsigned hi) { return (unsigned long long)hi << 32 | lo; }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return unsigned(furlong_pair(lo, hi) << (shift & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return unsigned(furlong_pair(lo, hi) >> (shift & 31));
}
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? lo : unsigned(furlong_pair(lo, hi) << shift >> 32);
}
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? hi : unsigned(furlong_pair(lo, hi) >> shift);
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const unsigned long long bytes = furlong_pair(x, y);
  unsigned out = 0;
  for (unsigned i = 0; i < 4; ++i) out |= unsigned(bytes >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
  return out;
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
static inline unsigned __sad(int a, int b, unsigned c) {
  return (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a)) + c;
}
static inline int __hadd(int a, int b) { return int(((long long)a + b) >> 1); }
static inline int __rhadd(int a, int b) { return int(((long long)a + b + 1) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b) >> 1); }
static inline unsigned __urhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b + 1) >> 1); }
static inline int __dp4a(int a, int b, int c) {
  unsigned sum = unsigned(c);
  for (int i = 0; i < 4; ++i)
    sum += unsigned(int((signed char)(unsigned(a) >> 8 * i)) * int((signed char)(unsigned(b) >> 8 * i)));
  return int(sum);
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
  return c;
}
#define FURLONG_MIN_MAX(R, A, B)                                                             \
  static inline R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }                        \
  static inline R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
FURLONG_MIN_MAX(int, int, int)
FURLONG_MIN_MAX(unsigned, unsigned, unsigned)
FURLONG_MIN_MAX(unsigned, int, unsigned)
FURLONG_MIN_MAX(unsigned, unsigned, int)
FURLONG_MIN_MAX(long, long, long)
FURLONG_MIN_MAX(unsigned long, unsigned long, unsigned long)
FURLONG_MIN_MAX(long long, long long, long long)
FURLONG_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
FURLONG_MIN_MAX(unsigned long long, long long, unsigned long long)
FURLONG_MIN_MAX(unsigned long long, unsigned long long, long long)
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }
)";

constexpr std::string_view kFloats = R"(
#define FURLONG_MATH1(n) extern "C" float n##f(float) noexcept; extern "C" double n(double) noexcept;
#define FURLONG_MATH2(n) extern "C" float n##f(float, float) noexcept; extern "C" double n(double, double) noexcept;
FURLONG_MATH1(sqrt) FURLONG_MATH1(cbrt) FURLONG_MATH1(fabs) FURLONG_MATH1(floor) FURLONG_MATH1(ceil)
FURLONG_MATH1(trunc) FURLONG_MATH1(round) FURLONG_MATH1(rint) FURLONG_MATH1(nearbyint) FURLONG_MATH1(exp)
FURLONG_MATH1(exp2) FURLONG_MATH1(expm1) FURLONG_MATH1(log) FURLONG_MATH1(log2) FURLONG_MATH1(log10)
FURLONG_MATH1(log1p) FURLONG_MATH1(sin) FURLONG_MATH1(cos) FURLONG_MATH1(tan) FURLONG_MATH1(asin)
FURLONG_MATH1(acos) FURLONG_MATH1(atan) FURLONG_MATH1(sinh) FURLONG_MATH1(cosh) FURLONG_MATH1(tanh)
FURLONG_MATH1(erf) FURLONG_MATH1(erfc) FURLONG_MATH1(tgamma) FURLONG_MATH1(lgamma)
FURLONG_MATH2(pow) FURLONG_MATH2(fmin) FURLONG_MATH2(fmax) FURLONG_MATH2(fmod) FURLONG_MATH2(atan2)
FURLONG_MATH2(copysign) FURLONG_MATH2(hypot) FURLONG_MATH2(fdim) FURLONG_MATH2(remainder)
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" int abs(int) noexcept;
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
)"
                                     // A kernel's own printing is its own business; the library never prints.
                                     "extern \"C\" int "
                                     "printf(const char*, ...);"
                                     R"(
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp2f(x * 3.321928094887362f); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
template <class To, class From> static inline To furlong_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline unsigned __float_as_uint(float x) { return furlong_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return furlong_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return furlong_bits<float>(x); }
static inline float __int_as_float(int x) { return furlong_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return furlong_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return furlong_bits<double>(x); }
static inline int __double2hiint(double x) { return int(furlong_bits<unsigned long long>(x) >> 32); }
static inline int __double2loint(double x) { return int(furlong_bits<unsigned long long>(x)); }
static inline double __hiloint2double(int hi, int lo) { return furlong_bits<double>(furlong_pair(unsigned(lo), unsigned(hi))); }
static inline double furlong_clamp(double x, double lo, double hi) { return x > lo ? (x < hi ? x : hi) : (x <= lo ? lo : 0.0); }
#define FURLONG_ROUND(suffix, how)                                                                                 \
  static inline int __float2int_##suffix(float x) { return int(furlong_clamp(how(double(x)), -2147483648.0, 2147483647.0)); } \
  static inline unsigned __float2uint_##suffix(float x) { return unsigned(furlong_clamp(how(double(x)), 0.0, 4294967295.0)); } \
  static inline int __double2int_##suffix(double x) { return int(furlong_clamp(how(x), -2147483648.0, 2147483647.0)); } \
  static inline unsigned __double2uint_##suffix(double x) { return unsigned(furlong_clamp(how(x), 0.0, 4294967295.0)); }
FURLONG_ROUND(rn, __builtin_rint)
FURLONG_ROUND(rz, __builtin_trunc)
FURLONG_ROUND(ru, __builtin_ceil)
FURLONG_ROUND(rd, __builtin_floor)
static inline float __int2float_rn(int x) { return float(x); }
static inline float __uint2float_rn(unsigned x) { return float(x); }
static inline double __int2double_rn(int x) { return double(x); }
static inline double __uint2double_rn(unsigned x) { return double(x); }
static inline float __ll2float_rn(long long x) { return float(x); }
static inline float __ull2float_rn(unsigned long long x) { return float(x); }
)";

constexpr std::string_view kMemory = R"(
#define FURLONG_LOAD(f) template <class T> static inline T f(const T* p) { return *p; }
#define FURLONG_STORE(f) template <class T> static inline void f(T* p, T value) { *p = value; }
FURLONG_LOAD(__ldg) FURLONG_LOAD(__ldca) FURLONG_LOAD(__ldcg) FURLONG_LOAD(__ldcs) FURLONG_LOAD(__ldlu) FURLONG_LOAD(__ldcv)
FURLONG_STORE(__stwb) FURLONG_STORE(__stcg) FURLONG_STORE(__stcs) FURLONG_STORE(__stwt)
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __nanosleep(unsigned) {}
static inline void __trap() { __builtin_trap(); }

#define FURLONG_ATOMIC(f, builtin, T)                                                        \
  static inline T f(T* p, T v) { return builtin(p, v, __ATOMIC_RELAXED); }
#define FURLONG_ATOMICS(T)                                                                   \
  FURLONG_ATOMIC(atomicAdd, __atomic_fetch_add, T)                                           \
  FURLONG_ATOMIC(atomicOr, __atomic_fetch_or, T)                                             \
  FURLONG_ATOMIC(atomicAnd, __atomic_fetch_and, T)                                           \
  FURLONG_ATOMIC(atomicXor, __atomic_fetch_xor, T)                                           \
  FURLONG_ATOMIC(atomicExch, __atomic_exchange_n, T)                                         \
  static inline T atomicCAS(T* p, T expected, T wanted) {                                    \
    __atomic_compare_exchange_n(p, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return expected;                                                                         \
  }                                                                                          \
  static inline T atomicMin(T* p, T v) {                                                     \
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                            \
    while (v < old && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} \
    return old;                                                                              \
  }                                                                                          \
  static inline T atomicMax(T* p, T v) {                                                     \
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                            \
    while (v > old && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} \
    return old;                                                                              \
  }
FURLONG_ATOMICS(int)
FURLONG_ATOMICS(unsigned)
FURLONG_ATOMICS(long long)
FURLONG_ATOMICS(unsigned long long)
FURLONG_ATOMIC(atomicSub, __atomic_fetch_sub, int)
FURLONG_ATOMIC(atomicSub, __atomic_fetch_sub, unsigned)
static inline unsigned atomicInc(unsigned* p, unsigned most) {
  unsigned old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, old >= most ? 0u : old + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return old;
}
static inline unsigned atomicDec(unsigned* p, unsigned most) {
  unsigned old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, old == 0 || old > most ? most : old - 1, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {}
  return old;
}
#define FURLONG_ATOMIC_FLOAT(T, B)                                                           \
  static inline T atomicAdd(T* p, T v) {                                                     \
    B* bits = reinterpret_cast<B*>(p);                                                       \
    B old = __atomic_load_n(bits, __ATOMIC_RELAXED);                                         \
    while (!__atomic_compare_exchange_n(bits, &old, furlong_bits<B>(furlong_bits<T>(old) + v), true, \
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}              \
    return furlong_bits<T>(old);                                                             \
  }                                                                                          \
  static inline T atomicExch(T* p, T v) {                                                    \
    return furlong_bits<T>(__atomic_exchange_n(reinterpret_cast<B*>(p), furlong_bits<B>(v), __ATOMIC_RELAXED)); \
  }
FURLONG_ATOMIC_FLOAT(float, unsigned)
FURLONG_ATOMIC_FLOAT(double, unsigned long long)
)";

// Without FURLONG_CUDA_WAITS these are not declared: a text that reaches them through a header that was not
// scanned does not compile, instead of computing nonsense.
constexpr std::string_view kWaits = R"(
#if FURLONG_CUDA_WAITS
static inline void __syncthreads() { furlong_service().sync_block(0, nullptr); }
static inline int __syncthreads_count(int p) { return int(furlong_service().sync_block(p, nullptr)); }
static inline int __syncthreads_or(int p) { return furlong_service().sync_block(p, nullptr) != 0; }
static inline int __syncthreads_and(int p) {
  unsigned participants = 0;
  return furlong_service().sync_block(p, &participants) == participants;
}
static inline unsigned furlong_lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) { furlong_service().exchange(mask, 0); }
static inline unsigned __activemask() { return furlong_service().active_lanes(); }
static inline unsigned furlong_ballot(const furlong_exchange& all) {
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (all.lanes >> i & 1 && all.values[i] != 0) bits |= 1u << i;
  return bits;
}
static inline unsigned __ballot_sync(unsigned mask, int p) { return furlong_ballot(*furlong_service().exchange(mask, p != 0)); }
static inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
static inline int __all_sync(unsigned mask, int p) {
  const furlong_exchange& all = *furlong_service().exchange(mask, p != 0);
  return furlong_ballot(all) == all.lanes;
}
template <class T> static inline unsigned long long furlong_pack(T value) {
  static_assert(sizeof(T) <= 8, "warp operations take values of at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
// The value of lane `from`, or one's own where that lane takes no part.
template <class T> static inline T furlong_shuffle(unsigned mask, T value, unsigned lane, unsigned from) {
  const furlong_exchange& all = *furlong_service().exchange(mask, furlong_pack(value));
  const unsigned long long bits = all.values[all.lanes >> from & 1 ? from : lane];
  T out;
  __builtin_memcpy(&out, &bits, sizeof out);
  return out;
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const unsigned lane = furlong_lane(), w = unsigned(width);
  return furlong_shuffle(mask, value, lane, (lane & ~(w - 1)) | (unsigned(from) & (w - 1)));
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = furlong_lane(), first = lane & ~(unsigned(width) - 1);
  return furlong_shuffle(mask, value, lane, lane < first + delta ? lane : lane - delta);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = furlong_lane(), w = unsigned(width), end = (lane & ~(w - 1)) + w;
  return furlong_shuffle(mask, value, lane, lane + delta >= end ? lane : lane + delta);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int other, int width = 32) {
  const unsigned lane = furlong_lane(), w = unsigned(width), from = lane ^ unsigned(other);
  return furlong_shuffle(mask, value, lane, from >= (lane & ~(w - 1)) + w ? lane : from & 31);
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T value) {
  const unsigned long long own = furlong_pack(value);
  const furlong_exchange& all = *furlong_service().exchange(mask, own);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (all.lanes >> i & 1 && all.values[i] == own) bits |= 1u << i;
  return bits;
}
template <class T> static inline unsigned __match_all_sync(unsigned mask, T value, int* same) {
  const unsigned long long own = furlong_pack(value);
  const furlong_exchange& all = *furlong_service().exchange(mask, own);
  *same = 1;
  for (unsigned i = 0; i < 32; ++i)
    if (all.lanes >> i & 1 && all.values[i] != own) *same = 0;
  return *same ? mask : 0;
}
#define FURLONG_REDUCE(name, T, start, step)                                                 \
  static inline T name(unsigned mask, T value) {                                             \
    const furlong_exchange& all = *furlong_service().exchange(mask, furlong_pack(value));    \
    T total = start;                                                                         \
    for (unsigned i = 0; i < 32; ++i)                                                        \
      if (all.lanes >> i & 1) { const T v = T(all.values[i]); total = step; }                \
    return total;                                                                            \
  }
FURLONG_REDUCE(__reduce_add_sync, unsigned, 0u, total + v)
FURLONG_REDUCE(__reduce_min_sync, unsigned, ~0u, v < total ? v : total)
FURLONG_REDUCE(__reduce_max_sync, unsigned, 0u, v > total ? v : total)
FURLONG_REDUCE(__reduce_and_sync, unsigned, ~0u, total & v)
FURLONG_REDUCE(__reduce_or_sync, unsigned, 0u, total | v)
FURLONG_REDUCE(__reduce_xor_sync, unsigned, 0u, total ^ v)
FURLONG_REDUCE(__reduce_add_sync, int, 0, int(unsigned(total) + unsigned(v)))
FURLONG_REDUCE(__reduce_min_sync, int, 0x7fffffff, v < total ? v : total)
FURLONG_REDUCE(__reduce_max_sync, int, -0x7fffffff - 1, v > total ? v : total)
#endif
)";

}  // namespace

std::string_view cuda_prelude() {
  static const std::string text = std::string(kLanguage) + std::string(kVectors) + std::string(kIntegers) +
                                  std::string(kFloats) + std::string(kMemory) + std::string(kWaits);
  return text;
}

}  // namespace furlong::device::host
