#include "furlong/program/linear/internal/texts.h"

namespace furlong::program::linear {

const std::string_view instructions_begin_text = R"cuda(
// instructions: begin
typedef unsigned int uint32;
typedef unsigned long long uint64;

__device__ __forceinline__ float half_f32(uint32 half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(half)));
  return value;
}

__device__ __forceinline__ uint32 f32_half(float value) {
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
}
)cuda";

const std::string_view instructions_end_text = R"cuda(
// instructions: end
)cuda";

const std::string_view instructions_sm80_text = R"cuda(
// Read once: past the first-level cache, which the activations need.
__device__ __forceinline__ uint4 load_once(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

// d += A B for 16 rows, 8 columns and 32 bytes of k a row: int8 of 32, bf16 and f16 of 16.
__device__ __forceinline__ void mma_s8(int (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                              uint32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bf16(float (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                                uint32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_f16(float (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                               uint32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Four 8 by 16-byte matrices from shared memory; lane i names row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(uint32 (&d)[4], const void* row) {
  const uint32 address = static_cast<uint32>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}

// 16 bytes from memory to shared memory, beside the computation.
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
)cuda";

const std::string_view instructions_sm90a_text = R"cuda(
// What ordinary instructions wrote to shared memory is there for the warp groups' ones.
__device__ __forceinline__ void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void group_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
)cuda";

const std::string_view instructions_sm75_text = R"cuda(
__device__ __forceinline__ uint4 load_once(const uint4* from) { return __ldcs(from); }

__device__ __forceinline__ void mma_s8_8(int& d0, int& d1, uint32 a, uint32 b) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(d0), "+r"(d1)
      : "r"(a), "r"(b));
}
// d += A B for 16 rows, 8 columns and 32 bytes of k a row, from the halves that this chip has.
__device__ __forceinline__ void mma_s8(int (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                              uint32 b1) {
  mma_s8_8(d[0], d[1], a0, b0);
  mma_s8_8(d[0], d[1], a2, b1);
  mma_s8_8(d[2], d[3], a1, b0);
  mma_s8_8(d[2], d[3], a3, b1);
}
__device__ __forceinline__ void mma_f16_8(float (&d)[4], uint32 a0, uint32 a1, uint32 b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(b));
}
__device__ __forceinline__ void mma_f16(float (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                               uint32 b1) {
  mma_f16_8(d, a0, a1, b0);
  mma_f16_8(d, a2, a3, b1);
}
)cuda";

}  // namespace furlong::program::linear
