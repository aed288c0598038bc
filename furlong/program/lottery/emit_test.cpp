#include "furlong/program/lottery/emit.h"

#include <gtest/gtest.h>

#include "furlong/base/os/file.h"
#include "furlong/base/os/library.h"
#include "furlong/base/os/process.h"
#include "furlong/base/random.h"
#include "furlong/program/lottery/reference.h"

namespace furlong::program::lottery {
namespace {

struct Case {
  Parameters parameters;
  Geometry geometry;
  LotteryProgram program;
  TextOrigin origin;
};

Case make_case(Random& random, std::int64_t loads, std::int64_t wide) {
  Case made{.parameters = {.day = random.between(0, 1000), .loads = loads, .wide = wide}};
  for (auto& byte : made.parameters.epoch_seed) byte = static_cast<std::uint8_t>(random.below(256));
  made.geometry = *geometry_of(made.parameters);
  made.program = *generate_program(made.parameters);
  made.origin = {to_hex(made.parameters.epoch_seed), made.parameters.day, loads, wide};
  return made;
}

std::vector<Case> one_of_each_class(std::string_view label) {
  Random random(4, label);
  std::vector<Case> cases;
  for (const std::int64_t loads : {32, 64, 128})
    for (const std::int64_t wide : {0, 8, 32}) cases.push_back(make_case(random, loads, wide));
  return cases;
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

constexpr std::string_view kLoop = "  for (uint iteration = 0u; iteration < 8u; ++iteration) {";
constexpr std::string_view kLoad = "(*(address))";

TEST(LotteryTexts, HoldEachAnchorOnce) {
  Random random(11, "anchors");
  for (int i = 0; i < 100; ++i) {
    static constexpr std::array<std::int64_t, 3> loads = {32, 64, 128};
    static constexpr std::array<std::int64_t, 3> wide = {0, 8, 32};
    const Case c = make_case(random, loads[random.below(3)], wide[random.below(3)]);
    const struct {
      std::string text;
      std::string_view hint, signature;
    } texts[] = {{emit_cuda(c.program, c.geometry, c.origin), "#pragma unroll 1\n",
                  "extern \"C\" __global__ void lottery("},
                 {emit_opencl(c.program, c.geometry, c.origin), "#pragma unroll 1\n", "void lottery("},
                 {emit_metal(c.program, c.geometry, c.origin), "#pragma unroll 1\n", "kernel void lottery("},
                 {emit_host(c.program, c.geometry, c.origin), "#pragma GCC unroll 1\n  ",
                  "extern \"C\" void lottery("}};
    for (const auto& [text, hint, signature] : texts) {
      EXPECT_EQ(occurrences(text, std::string(hint) + std::string(kLoop)), 1u) << text;
      EXPECT_EQ(occurrences(text, kLoop), 1u);
      EXPECT_EQ(occurrences(text, kLoad), 1u);
      EXPECT_EQ(occurrences(text, signature), 1u);
      EXPECT_EQ(occurrences(text, "dataset_word(dataset, ") + occurrences(text, "dataset_quad(dataset, "),
                static_cast<std::size_t>(c.parameters.loads / kIterations));
    }
  }
}

TEST(LotteryTexts, SameParametersSameBytes) {
  const auto text = [] {
    const Case c = one_of_each_class("bytes")[4];
    return emit_cuda(c.program, c.geometry, c.origin) + emit_host(c.program, c.geometry, c.origin);
  };
  EXPECT_EQ(text(), text());
}

/// Compiles C++ text into a library; the compiler's words fail the test.
Result<Library> compile(const std::filesystem::path& folder, const std::string& name, const std::string& text,
                        const std::vector<std::string>& options) {
  const auto source = folder / (name + ".cpp");
  const auto object = folder / (name + ".so");
  FURLONG_CHECK(system_files().write_atomic(source, text));
  ProcessRequest request;
  request.argv = {"c++", "-std=c++20", "-shared", "-fPIC", source.string(), "-o", object.string()};
  request.argv.insert(request.argv.end(), options.begin(), options.end());
  FURLONG_TRY(const ProcessEnd end, system_processes().run(request, 120));
  if (end.exit_code != 0) return fail(Code::invalid, "{}: {}", end.text(), end.standard_error);
  return Library::open(object);
}

/// The block that the host back end hands to a kernel; the fields that lottery texts use, and their
/// neighbours.
struct Block {
  unsigned long long x = 0, y = 0, z = 0;
  unsigned long long grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned threads_x = 1, threads_y = 1, threads_z = 1;
};
constexpr std::string_view kBlockText =
    "struct furlong_block { unsigned long long x, y, z, grid_x, grid_y, grid_z; unsigned threads_x, "
    "threads_y, "
    "threads_z; };\n";

/// What one launch gives.
struct Outputs {
  std::vector<std::uint64_t> hashes;
  std::vector<std::uint32_t> hits;
  bool operator==(const Outputs&) const = default;
};

constexpr std::uint64_t kStart = ~0ull - 77;  // passes 2^64 on the way
constexpr std::uint32_t kCount = 333;
constexpr std::uint64_t kTarget = 1ull << 62;

Outputs expected_outputs(const Case& c, const Bytes& dataset) {
  Outputs out;
  out.hashes = reference_hashes(c.program, kStart, kCount, c.geometry.dataset_words(), full_rows(dataset), 1);
  out.hits.resize((kCount + 31) / 32);
  for (std::size_t i = 0; i < kCount; ++i)
    if (out.hashes[i] < kTarget) out.hits[i / 32] |= 1u << (i % 32);
  return out;
}

Bytes dataset_of(const Case& c) {
  const Cache cache(c.parameters, c.geometry.cache_lines());
  Bytes dataset(c.geometry.dataset_bytes);
  EXPECT_TRUE(fill_dataset(cache, dataset, 2, {}));
  return dataset;
}

Outputs empty_outputs() {
  return {std::vector<std::uint64_t>(kCount, 0xdeadbeefdeadbeef),
          std::vector<std::uint32_t>((kCount + 31) / 32)};
}

// Every class, each with other lanes and unrolling, against the reference, bit for bit.
TEST(LotteryTexts, HostTextHashesAsTheReference) {
  const auto folder = TemporaryFolder::make("furlong-lottery-test");
  ASSERT_TRUE(folder) << folder.error().text();
  constexpr int kLanes[] = {1, 4, 8, 16};
  int number = 0;
  for (const Case& c : one_of_each_class("host text")) {
    const int lanes = kLanes[number % 4];
    const auto library = compile(
        folder->path(), fmt::format("host{}", number),
        "#include <stdint.h>\n" + std::string(kBlockText) + emit_host(c.program, c.geometry, c.origin),
        {"-O1", "-march=native", "-Wall", "-Wextra", "-Werror", fmt::format("-DLANES={}", lanes)});
    ASSERT_TRUE(library) << library.error().text();
    using Kernel = void(const Block&, const std::uint32_t*, std::uint64_t, std::uint32_t, std::uint64_t,
                        std::uint64_t*, std::uint32_t*);
    auto* kernel = library->function<Kernel>("lottery");
    ASSERT_NE(kernel, nullptr);
    const Bytes dataset = dataset_of(c);
    Outputs out = empty_outputs();
    const unsigned threads = number % 2 == 0 ? 64 : 50;  // 50: no whole number of lanes
    for (unsigned long long block = 0; block * threads < kCount + threads; ++block)
      kernel({.x = block, .threads_x = threads}, reinterpret_cast<const std::uint32_t*>(dataset.data()),
             kStart, kCount, kTarget, out.hashes.data(), out.hits.data());
    EXPECT_EQ(out, expected_outputs(c, dataset)) << c.origin.loads << " loads, " << c.origin.wide << " wide";
    ++number;
  }
}

/// Enough of Metal's language in C++ to run a kernel with one thread at a time.
constexpr std::string_view kMetalInCpp = R"(
#include <stdint.h>
typedef uint32_t uint;
typedef uint64_t ulong;
namespace metal {
struct alignas(16) uint4 { uint x, y, z, w; };
struct atomic_uint { uint value; };
enum memory_order { memory_order_relaxed };
inline uint rotate(uint x, uint n) { return x << (n & 31) | x >> (-n & 31); }
inline uint mulhi(uint a, uint b) { return static_cast<uint>(static_cast<ulong>(a) * b >> 32); }
inline uint atomic_fetch_or_explicit(atomic_uint* a, uint bits, memory_order) {
  const uint old = a->value;
  a->value |= bits;
  return old;
}
}
#define kernel extern "C"
#define device
#define constant
)";

/// The same for OpenCL C.
constexpr std::string_view kOpenclInCpp = R"(
#include <stdint.h>
typedef uint32_t uint;
typedef uint64_t ulong;
struct alignas(16) uint4 { uint x, y, z, w; };
static uint current_item;
inline uint rotate(uint x, uint n) { return x << (n & 31) | x >> (-n & 31); }
inline uint mul_hi(uint a, uint b) { return static_cast<uint>(static_cast<ulong>(a) * b >> 32); }
inline uint atomic_or(volatile uint* a, uint bits) { const uint old = *a; *a = old | bits; return old; }
inline uint get_global_id(int) { return current_item; }
extern "C" void set_item(uint i) { current_item = i; }
#define __global
#define __kernel extern "C"
#define reqd_work_group_size(x, y, z) unused
)";

// The Metal text cannot run here; as C++ with a few definitions it can be judged all the same.
TEST(LotteryTexts, MetalTextHashesAsTheReferenceWhenReadAsCpp) {
  const auto folder = TemporaryFolder::make("furlong-lottery-test");
  ASSERT_TRUE(folder) << folder.error().text();
  for (const std::int64_t wide : {0, 8}) {
    Random random(6, "metal text");
    const Case c = make_case(random, 128, wide);
    std::string text = emit_metal(c.program, c.geometry, c.origin);
    const std::string_view include = "#include <metal_stdlib>\n";
    ASSERT_EQ(occurrences(text, include), 1u);
    text.replace(text.find(include), include.size(), "");
    const auto library =
        compile(folder->path(), fmt::format("metal{}", wide), std::string(kMetalInCpp) + text,
                {"-O1", "-Wno-attributes", "-Wno-unknown-pragmas"});
    ASSERT_TRUE(library) << library.error().text();
    using Kernel = void(const std::uint32_t*, std::uint64_t&, std::uint32_t&, std::uint64_t&, std::uint64_t*,
                        std::uint32_t*, std::uint32_t);
    auto* kernel = library->function<Kernel>("lottery");
    ASSERT_NE(kernel, nullptr);
    const Bytes dataset = dataset_of(c);
    Outputs out = empty_outputs();
    std::uint64_t start = kStart, target = kTarget;
    std::uint32_t count = kCount;
    for (std::uint32_t i = 0; i < kCount + 20; ++i)
      kernel(reinterpret_cast<const std::uint32_t*>(dataset.data()), start, count, target, out.hashes.data(),
             out.hits.data(), i);
    EXPECT_EQ(out, expected_outputs(c, dataset));
  }
}

// Where OpenCL is not installed; tests/lottery_texts_test.cpp runs it on an OpenCL device where there is one.
TEST(LotteryTexts, OpenclTextHashesAsTheReferenceWhenReadAsCpp) {
  const auto folder = TemporaryFolder::make("furlong-lottery-test");
  ASSERT_TRUE(folder) << folder.error().text();
  Random random(7, "opencl text");
  const Case c = make_case(random, 64, 32);
  const auto library = compile(folder->path(), "opencl",
                               std::string(kOpenclInCpp) + emit_opencl(c.program, c.geometry, c.origin),
                               {"-O1", "-Wno-attributes", "-Wno-unknown-pragmas"});
  ASSERT_TRUE(library) << library.error().text();
  using Kernel = void(const std::uint32_t*, std::uint64_t, std::uint32_t, std::uint64_t, std::uint64_t*,
                      volatile std::uint32_t*);
  auto* kernel = library->function<Kernel>("lottery");
  auto* set_item = library->function<void(std::uint32_t)>("set_item");
  ASSERT_NE(kernel, nullptr);
  ASSERT_NE(set_item, nullptr);
  const Bytes dataset = dataset_of(c);
  Outputs out = empty_outputs();
  for (std::uint32_t i = 0; i < kCount + 20; ++i) {
    set_item(i);
    kernel(reinterpret_cast<const std::uint32_t*>(dataset.data()), kStart, kCount, kTarget, out.hashes.data(),
           out.hits.data());
  }
  EXPECT_EQ(out, expected_outputs(c, dataset));
}

}  // namespace
}  // namespace furlong::program::lottery
