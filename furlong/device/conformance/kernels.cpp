// The suite's kernels in every language, and the same in plain C++ for back ends that run no code.
//   saxpy(a, x, y, n)                y[i] = a·x[i] + y[i]
//   scalars(in, out, a, b, c, n)     out[i] = in[i]·a + low(b) + high(b) + (unsigned)c, b of 64 bits
//   place(out)                       out[linear global place] = x + 1000·y + 1000000·z, in three dimensions
//   count(out)                       out[0] += 1 in every thread, atomically
//   shift(in, out, n)                out[i] = in[i] + SHIFT, SHIFT a define (1 when absent)

#include <algorithm>
#include <array>

#include "furlong/base/text.h"
#include "furlong/device/conformance/conformance.h"

namespace furlong::device {
namespace {

constexpr std::string_view kHost = R"(
#ifndef SHIFT
#define SHIFT 1
#endif
extern "C" void saxpy(const furlong_block& b, float a, const float* x, float* y, unsigned n) {
  for (unsigned t = 0; t < b.threads_x; ++t) {
    const unsigned long long i = b.x * b.threads_x + t;
    if (i < n) y[i] = a * x[i] + y[i];
  }
}
extern "C" void scalars(const furlong_block& b, const unsigned* in, unsigned* out, unsigned a,
                        unsigned long long wide, float c, unsigned n) {
  for (unsigned t = 0; t < b.threads_x; ++t) {
    const unsigned long long i = b.x * b.threads_x + t;
    if (i < n) out[i] = in[i] * a + (unsigned)wide + (unsigned)(wide >> 32) + (unsigned)c;
  }
}
extern "C" void place(const furlong_block& b, unsigned* out) {
  for (unsigned tz = 0; tz < b.threads_z; ++tz)
    for (unsigned ty = 0; ty < b.threads_y; ++ty)
      for (unsigned tx = 0; tx < b.threads_x; ++tx) {
        const unsigned x = b.x * b.threads_x + tx, y = b.y * b.threads_y + ty, z = b.z * b.threads_z + tz;
        const unsigned nx = b.grid_x * b.threads_x, ny = b.grid_y * b.threads_y;
        out[x + nx * (y + ny * z)] = x + 1000 * y + 1000000 * z;
      }
}
extern "C" void count(const furlong_block& b, unsigned* out) {
  for (unsigned t = 0; t < b.threads_x; ++t) __atomic_fetch_add(out, 1u, __ATOMIC_RELAXED);
}
extern "C" void shift(const furlong_block& b, const unsigned* in, unsigned* out, unsigned n) {
  for (unsigned t = 0; t < b.threads_x; ++t) {
    const unsigned long long i = b.x * b.threads_x + t;
    if (i < n) out[i] = in[i] + SHIFT;
  }
}
)";

constexpr std::string_view kOpenCl = R"(
#ifndef SHIFT
#define SHIFT 1
#endif
__kernel void saxpy(float a, __global const float* x, __global float* y, uint n) {
  const uint i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
__kernel void scalars(__global const uint* in, __global uint* out, uint a, ulong wide, float c, uint n) {
  const uint i = get_global_id(0);
  if (i < n) out[i] = in[i] * a + (uint)wide + (uint)(wide >> 32) + (uint)c;
}
__kernel void place(__global uint* out) {
  const uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  const uint nx = get_global_size(0), ny = get_global_size(1);
  out[x + nx * (y + ny * z)] = x + 1000 * y + 1000000 * z;
}
__kernel void count(volatile __global uint* out) { atomic_inc(out); }
__kernel void shift(__global const uint* in, __global uint* out, uint n) {
  const uint i = get_global_id(0);
  if (i < n) out[i] = in[i] + SHIFT;
}
)";

constexpr std::string_view kCuda = R"(
#ifndef SHIFT
#define SHIFT 1
#endif
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void scalars(const unsigned* in, unsigned* out, unsigned a, unsigned long long wide,
                                   float c, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * a + (unsigned)wide + (unsigned)(wide >> 32) + (unsigned)c;
}
extern "C" __global__ void place(unsigned* out) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                 z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned nx = gridDim.x * blockDim.x, ny = gridDim.y * blockDim.y;
  out[x + nx * (y + ny * z)] = x + 1000 * y + 1000000 * z;
}
extern "C" __global__ void count(unsigned* out) { atomicAdd(out, 1u); }
extern "C" __global__ void shift(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + SHIFT;
}
)";

struct Texts {
  Language language;
  std::string_view good;
  std::string_view bad;  // the fault stands in line 3
};
constexpr std::array<Texts, 3> kTexts{{
    {Language::host, kHost,
     "extern \"C\" void saxpy(const furlong_block&, float*\n y) {\n  y[0] = furlong_undeclared;\n}\n"},
    {Language::opencl, kOpenCl,
     "__kernel void saxpy(__global float*\n y) {\n  y[0] = furlong_undeclared;\n}\n"},
    {Language::cuda, kCuda,
     "extern \"C\" __global__ void saxpy(float*\n y) {\n  y[0] = furlong_undeclared;\n}\n"},
}};

const std::vector<std::string>& entry_names() {
  static const std::vector<std::string> names{"saxpy", "scalars", "place", "count", "shift"};
  return names;
}

Result<CompileRequest> request_for(const std::vector<Language>& languages, bool good) {
  std::vector<std::string> asked;
  for (const Language language : languages) {
    asked.emplace_back(language_name(language));
    for (const Texts& texts : kTexts) {
      if (texts.language != language) continue;
      CompileRequest request;
      request.language = language;
      request.name = "conformance";
      request.source = good ? texts.good : texts.bad;
      request.source_name = good ? "suite.src" : "bad.src";
      request.entries = good ? entry_names() : std::vector<std::string>{"saxpy"};
      return request;
    }
  }
  return fail(Code::unavailable, "the suite has no kernels in: {}", join(asked, ", "));
}

/// The arguments of a launch, taken in order with the checks that a compiler's types would give.
class Arguments {
 public:
  Arguments(const Launch& launch, const std::function<std::uint8_t*(Buffer&)>& bytes)
      : launch_(launch), bytes_(bytes) {}

  Status count(std::size_t wanted) const {
    if (launch_.arguments.size() == wanted) return {};
    return fail(Code::invalid, "'{}' takes {} arguments, {} given", launch_.entry, wanted,
                launch_.arguments.size());
  }
  template <class T>
  Result<T*> buffer(std::size_t place) const {
    const auto* argument = std::get_if<BufferArgument>(&launch_.arguments[place]);
    if (argument == nullptr || argument->buffer == nullptr) {
      return fail(Code::invalid, "'{}': argument {} must be a buffer", launch_.entry, place);
    }
    return reinterpret_cast<T*>(bytes_(*argument->buffer) + argument->offset);
  }
  template <class T>
  Result<T> scalar(std::size_t place) const {
    const auto* argument = std::get_if<Bytes>(&launch_.arguments[place]);
    if (argument == nullptr || argument->size() != sizeof(T)) {
      return fail(Code::invalid, "'{}': argument {} must be a value of {} bytes", launch_.entry, place,
                  sizeof(T));
    }
    return load_le<T>(argument->data());
  }

 private:
  const Launch& launch_;
  const std::function<std::uint8_t*(Buffer&)>& bytes_;
};

std::uint64_t threads_along(const Launch& launch, std::size_t axis) {
  return launch.grid[axis] * launch.block[axis];
}

Status run_saxpy(const Launch& launch, const Arguments& arguments) {
  FURLONG_CHECK(arguments.count(4));
  FURLONG_TRY(const float a, arguments.scalar<float>(0));
  FURLONG_TRY(const float* x, arguments.buffer<float>(1));
  FURLONG_TRY(float* y, arguments.buffer<float>(2));
  FURLONG_TRY(const std::uint32_t n, arguments.scalar<std::uint32_t>(3));
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(n, threads_along(launch, 0)); ++i)
    y[i] = a * x[i] + y[i];
  return {};
}

Status run_scalars(const Launch& launch, const Arguments& arguments) {
  FURLONG_CHECK(arguments.count(6));
  FURLONG_TRY(const std::uint32_t* in, arguments.buffer<std::uint32_t>(0));
  FURLONG_TRY(std::uint32_t* out, arguments.buffer<std::uint32_t>(1));
  FURLONG_TRY(const std::uint32_t a, arguments.scalar<std::uint32_t>(2));
  FURLONG_TRY(const std::uint64_t wide, arguments.scalar<std::uint64_t>(3));
  FURLONG_TRY(const float c, arguments.scalar<float>(4));
  FURLONG_TRY(const std::uint32_t n, arguments.scalar<std::uint32_t>(5));
  const std::uint32_t added = static_cast<std::uint32_t>(wide) + static_cast<std::uint32_t>(wide >> 32) +
                              static_cast<std::uint32_t>(c);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(n, threads_along(launch, 0)); ++i)
    out[i] = in[i] * a + added;
  return {};
}

Status run_place(const Launch& launch, const Arguments& arguments) {
  FURLONG_CHECK(arguments.count(1));
  FURLONG_TRY(std::uint32_t* out, arguments.buffer<std::uint32_t>(0));
  std::uint64_t at = 0;
  for (std::uint64_t z = 0; z < threads_along(launch, 2); ++z) {
    for (std::uint64_t y = 0; y < threads_along(launch, 1); ++y) {
      for (std::uint64_t x = 0; x < threads_along(launch, 0); ++x) {
        out[at++] = static_cast<std::uint32_t>(x + 1000 * y + 1000000 * z);
      }
    }
  }
  return {};
}

Status run_count(const Launch& launch, const Arguments& arguments) {
  FURLONG_CHECK(arguments.count(1));
  FURLONG_TRY(std::uint32_t* out, arguments.buffer<std::uint32_t>(0));
  *out += static_cast<std::uint32_t>(threads_along(launch, 0));
  return {};
}

Status run_shift(const CompileRequest& module, const Launch& launch, const Arguments& arguments) {
  FURLONG_CHECK(arguments.count(3));
  FURLONG_TRY(const std::uint32_t* in, arguments.buffer<std::uint32_t>(0));
  FURLONG_TRY(std::uint32_t* out, arguments.buffer<std::uint32_t>(1));
  FURLONG_TRY(const std::uint32_t n, arguments.scalar<std::uint32_t>(2));
  std::uint32_t shift = 1;
  for (const auto& [name, value] : module.defines) {
    if (name != "SHIFT") continue;
    FURLONG_TRY(const std::int64_t given, parse_integer(value));
    shift = static_cast<std::uint32_t>(given);
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(n, threads_along(launch, 0)); ++i)
    out[i] = in[i] + shift;
  return {};
}

}  // namespace

Result<CompileRequest> conformance_request(const std::vector<Language>& languages) {
  return request_for(languages, true);
}

Result<CompileRequest> conformance_bad_request(const std::vector<Language>& languages) {
  return request_for(languages, false);
}

Status conformance_compile(const CompileRequest& request) {
  if (request.source.find("furlong_undeclared") != std::string::npos) {
    return fail(Code::invalid, "{}:3:10: error: 'furlong_undeclared' was not declared", request.source_name);
  }
  for (const std::string& entry : request.entries) {
    if (std::find(entry_names().begin(), entry_names().end(), entry) == entry_names().end()) {
      return fail(Code::invalid, "{}: there is no kernel '{}'", request.source_name, entry);
    }
  }
  return {};
}

Status conformance_run(const CompileRequest& module, const Launch& launch,
                       const std::function<std::uint8_t*(Buffer&)>& bytes) {
  const Arguments arguments(launch, bytes);
  if (launch.entry == "saxpy") return run_saxpy(launch, arguments);
  if (launch.entry == "scalars") return run_scalars(launch, arguments);
  if (launch.entry == "place") return run_place(launch, arguments);
  if (launch.entry == "count") return run_count(launch, arguments);
  if (launch.entry == "shift") return run_shift(module, launch, arguments);
  return fail(Code::invalid, "there is no kernel '{}'", launch.entry);
}

}  // namespace furlong::device
