// A library of matrix products that is not NVIDIA's, for the wrapper of the real one: column-major products
// as its documentation has them, computed at once on the calling thread (the made-up card's memory is the
// host's). FURLONG_FAKE_CUBLAS=CALL:CODE makes a call answer a code.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int answer(const char* call) {
  const char* script = std::getenv("FURLONG_FAKE_CUBLAS");
  if (script == nullptr) return 0;
  const std::string text = script, name = std::string(call) + ":";
  return text.starts_with(name) ? std::atoi(text.c_str() + name.size()) : 0;
}

float of_bf16(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float of_half(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  value *= 0x1p112f;
  return (half & 0x8000) != 0 ? -value : value;
}

constexpr int kF16 = 2, kI8 = 3, kI32 = 10, kBf16 = 14;
int handle = 0;

double element(const void* from, int type, std::int64_t at) {
  if (type == kI8) return static_cast<const std::int8_t*>(from)[at];
  const std::uint16_t half = static_cast<const std::uint16_t*>(from)[at];
  return type == kBf16 ? of_bf16(half) : of_half(half);
}

}  // namespace

extern "C" {

int cublasCreate_v2(void** made) {
  *made = &handle;
  return answer("create");
}
int cublasDestroy_v2(void*) { return answer("destroy"); }
int cublasGetVersion_v2(void*, int* version) {
  *version = 130002;
  return answer("version");
}
int cublasSetStream_v2(void*, void*) { return answer("stream"); }

int cublasGemmEx(void*, int op_a, int op_b, int m, int n, int k, const void*, const void* a, int a_type,
                 int lda, const void* b, int b_type, int ldb, const void*, void* c, int c_type, int ldc, int,
                 int) {
  if (const int code = answer("gemm")) return code;
  if (op_a != 1 || op_b != 0 || (a_type != kF16 && a_type != kI8 && a_type != kBf16) || a_type != b_type)
    return 7;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int p = 0; p < k; ++p)
        sum += element(a, a_type, std::int64_t{i} * lda + p) * element(b, b_type, std::int64_t{j} * ldb + p);
      const std::int64_t at = std::int64_t{j} * ldc + i;
      if (c_type == kI32)
        static_cast<std::int32_t*>(c)[at] = static_cast<std::int32_t>(sum);
      else
        static_cast<float*>(c)[at] = static_cast<float>(sum);
    }
  return 0;
}
}
