// The linear-algebra texts as they run: variants of every sort against the double reference, through the host
// shim with the matrix instructions emulated by shuffles, on shapes with all kinds of remainders; and every
// text compiled for every chip of the table where there is an NVRTC. No card is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/device/host/host.h"
#include "furlong/lattice/lint.h"
#include "furlong/lattice/space.h"
#include "furlong/program/instance.h"
#include "furlong/program/linear/linear.h"
#include "furlong/race/internal/entrant.h"
#include "tests/cache_folder.h"
#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include "furlong/device/cuda/nvrtc.h"
#endif

namespace furlong {
namespace {

using program::Instance;
using program::RunInputs;
using Problem = std::vector<std::pair<std::string, lattice::Value>>;

const auto* const cache_folder_environment =
    ::testing::AddGlobalTestEnvironment(new CacheFolder("furlong-linear-texts"));

// What the inline PTX does, by shuffles: fragments as the PTX manual lays them out (matrix instructions for
// m16n8k32 and m16n8k16, ldmatrix).
constexpr std::string_view kEmulated = R"cuda(
typedef unsigned int uint32;
typedef unsigned long long uint64;
__device__ __forceinline__ uint4 load_once(const uint4* from) { return *from; }
__device__ __forceinline__ float half_f32(uint32 half) {
  const uint32 bits = (half & 0x7fffu) << 13;
  const float magnitude = (half & 0x7c00u) == 0x7c00u ? __uint_as_float(bits | 0x7f800000u)
                                                      : __uint_as_float(bits) * __uint_as_float(0x77800000u);
  return (half & 0x8000u) != 0u ? -magnitude : magnitude;
}
__device__ __forceinline__ uint32 f32_half(float value) {
  uint32 bits = __float_as_uint(value) & 0x7fffffffu;
  const uint32 sign = __float_as_uint(value) >> 16 & 0x8000u;
  if (bits > 0x7f800000u) return 0x7e00u;
  if (bits >= 0x477ff000u) return sign | 0x7c00u;
  if (bits < 0x38800000u) return sign | static_cast<uint32>(__float2int_rn(__uint_as_float(bits) * 16777216.0f));
  bits += 0xfffu + (bits >> 13 & 1u);
  return sign | ((bits - 0x38000000u) >> 13);
}
__device__ __forceinline__ float of_bf16(uint32 half) { return __uint_as_float(half << 16); }
__device__ __forceinline__ int pair_product(int, uint32 a, uint32 b) { return __dp4a(static_cast<int>(a), static_cast<int>(b), 0); }
struct Bf16 {};
struct F16 {};
__device__ __forceinline__ float pair_product(Bf16, uint32 a, uint32 b) {
  return of_bf16(a & 0xffffu) * of_bf16(b & 0xffffu) + of_bf16(a >> 16) * of_bf16(b >> 16);
}
__device__ __forceinline__ float pair_product(F16, uint32 a, uint32 b) {
  return half_f32(a & 0xffffu) * half_f32(b & 0xffffu) + half_f32(a >> 16) * half_f32(b >> 16);
}
template <class Kind, class Number>
__device__ __forceinline__ void emulate(Kind kind, Number (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                        uint32 b1) {
  const int lane = threadIdx.x % 32;
  for (int t = 0; t < 4; ++t) {
    const int row = lane / 4 * 4 + t;
    const uint32 upper0 = __shfl_sync(0xffffffffu, a0, row), lower0 = __shfl_sync(0xffffffffu, a1, row);
    const uint32 upper1 = __shfl_sync(0xffffffffu, a2, row), lower1 = __shfl_sync(0xffffffffu, a3, row);
    for (int c = 0; c < 2; ++c) {
      const int column = (lane % 4 * 2 + c) * 4 + t;
      const uint32 first = __shfl_sync(0xffffffffu, b0, column), second = __shfl_sync(0xffffffffu, b1, column);
      d[c] += pair_product(kind, upper0, first) + pair_product(kind, upper1, second);
      d[2 + c] += pair_product(kind, lower0, first) + pair_product(kind, lower1, second);
    }
  }
}
__device__ __forceinline__ void mma_s8(int (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0, uint32 b1) {
  emulate(0, d, a0, a1, a2, a3, b0, b1);
}
__device__ __forceinline__ void mma_bf16(float (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0, uint32 b1) {
  emulate(Bf16(), d, a0, a1, a2, a3, b0, b1);
}
__device__ __forceinline__ void mma_f16(float (&d)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0, uint32 b1) {
  emulate(F16(), d, a0, a1, a2, a3, b0, b1);
}
__device__ __forceinline__ void load_matrices(uint32 (&d)[4], const void* row) {
  const int lane = threadIdx.x % 32;
  for (int j = 0; j < 4; ++j) {
    const uint64 from = __shfl_sync(0xffffffffu, reinterpret_cast<uint64>(row), j * 8 + lane / 4);
    d[j] = reinterpret_cast<const uint32*>(from)[lane % 4];
  }
}
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
}
__device__ __forceinline__ void copy_commit() {}
template <int Pending>
__device__ __forceinline__ void copy_wait() {}
)cuda";

std::string emulated(std::string text) {
  const std::size_t begin = text.find("// instructions: begin");
  const std::string_view end_mark = "// instructions: end";
  const std::size_t end = text.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos) return text;
  return text.replace(begin, end + end_mark.size() - begin, kEmulated);
}

std::shared_ptr<const program::Program> shipped(const std::string& name) {
  auto made = program::load_program_file("programs/linear/" + name + ".toml");
  EXPECT_TRUE(made) << made.error().text();
  return made ? *std::move(made) : nullptr;
}

std::shared_ptr<device::Device> host_device() {
  static const std::unique_ptr<device::Driver> driver = device::make_host_driver();
  auto opened = driver->open(0);
  if (!opened) {
    ADD_FAILURE() << opened.error().text();
    return nullptr;
  }
  return *std::move(opened);
}

/// Runs points of one program on one problem, scratch poisoned before, and compares with the recipe's
/// reference.
class Runner {
 public:
  Runner(const std::string& name, Problem problem) : device_(host_device()) {
    auto made = Instance::make(shipped(name), "cuda", std::move(problem), {});
    EXPECT_TRUE(made) << made.error().text();
    if (made) instance_ = std::make_unique<Instance>(*std::move(made));
  }
  const Instance& instance() const { return *instance_; }
  /// The knob whose lossy values may be chosen.
  std::vector<std::string> allowed() const {
    for (const lattice::Knob& knob : instance_->lattice().knobs)
      if (!knob.lossy.empty()) return {knob.name};
    return {};
  }

  /// All outputs; `from` in the text is replaced by `to`.
  Result<std::vector<Bytes>> run(const lattice::Point& point, const RunInputs& inputs,
                                 std::string_view from = {}, std::string_view to = {}) {
    FURLONG_TRY(program::VariantPlan plan, instance_->plan(point));
    plan.source = emulated(plan.source);
    if (!from.empty()) {
      const std::size_t at = plan.source.find(from);
      if (at == std::string::npos) return fail(Code::invalid, "'{}' is not in the text", from);
      plan.source.replace(at, from.size(), to);
    }
    FURLONG_TRY(const auto module, device_->compile(race::compile_request(*instance_, plan, 0)));
    const auto& arguments = instance_->program().arguments;
    std::vector<std::unique_ptr<device::Buffer>> buffers(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind == program::ArgumentKind::scalar) continue;
      FURLONG_TRY(buffers[i], device_->allocate(inputs.buffer_bytes[i]));
      // 0xff: NaN in every format, -1 in int8
      FURLONG_CHECK(inputs.bytes[i].empty() ? buffers[i]->fill(0xff, 0, inputs.buffer_bytes[i])
                                            : buffers[i]->write(0, inputs.bytes[i]));
    }
    FURLONG_TRY(const race::Pipeline pipeline,
                race::make_launches(
                    *instance_, point, *module,
                    [&](std::size_t i) { return device::BufferArgument{buffers[i].get(), 0}; }, inputs));
    for (const auto* list : {&pipeline.once, &pipeline.launches})
      for (const device::Launch& launch : *list)
        FURLONG_CHECK_DOING(device_->launch(launch), "{} of {}", launch.entry, plan.name);
    FURLONG_CHECK(device_->finish());
    std::vector<Bytes> out(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].direction != program::Direction::out || buffers[i] == nullptr) continue;
      out[i].resize(inputs.buffer_bytes[i]);
      FURLONG_CHECK(buffers[i]->read(0, out[i]));
    }
    return out;
  }

  /// The named variants on inputs of the whole problem.
  void check(std::string_view variants, std::uint64_t seed = 5) {
    ASSERT_NE(instance_, nullptr);
    const auto points = instance_->select(variants, allowed());
    ASSERT_TRUE(points) << points.error().text();
    auto inputs = instance_->timed_inputs(seed, *points);
    ASSERT_TRUE(inputs) << inputs.error().text();
    const auto& program = instance_->program();
    std::vector<Bytes> expected(program.arguments.size());
    const Status known = program.recipe->reference(program, inputs->problem, inputs->bytes, expected);
    ASSERT_TRUE(known) << known.error().text();
    for (const lattice::Point& point : *points) {
      const std::string name = lattice::variant_name(instance_->lattice(), point);
      const auto got = run(point, *inputs);
      ASSERT_TRUE(got) << name << ": " << got.error().text();
      const auto check = instance_->check(point);
      ASSERT_TRUE(check) << check.error().text();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i].empty()) continue;
        const Status same = program::compare_output(*check, program.arguments[i], (*got)[i], expected[i]);
        EXPECT_TRUE(same) << name << ": " << same.error().text();
      }
    }
  }

 private:
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<Instance> instance_;
};

Problem gemv(std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {{"n", n}, {"k", k}, {"batch", batch}, {"rotate_mib", 0}};
}
Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) { return {{"m", m}, {"n", n}, {"k", k}}; }

TEST(LinearTextsOnHost, MatrixTimesVectorByEveryKnob) {
  Runner("gemv", gemv(35, 2003, 1)).check("imma,char4,x8,f64,w4,u2,r2-s4");
}

TEST(LinearTextsOnHost, MatrixTimesSeveralVectors) {
  Runner("gemv", gemv(45, 520, 3)).check("imma-r2-u2,imma-x8,char4-r2-u4,f64-r2");
  Runner("gemv", gemv(19, 2080, 8)).check("imma-w4-s4,r2");
}

TEST(LinearTextsOnHost, ShapesOfOne) {
  Runner("gemv", gemv(1, 1, 1)).check("imma,char4,f64");
  Runner("gemv", gemv(1, 31, 2)).check("imma-r2");
  Runner("gemv", gemv(17, 32, 1)).check("imma,r4-u4");
}

TEST(LinearTextsOnHost, SeveralCopies) {
  // 1 MiB of copies of 34,816 bytes: 31 of them
  Runner runner("gemv", {{"n", 64}, {"k", 512}, {"batch", 1}, {"rotate_mib", 1}});
  const auto launches = runner.instance().launches(
      runner.instance().lattice().base(),
      *runner.instance().timed_inputs(1, std::vector{runner.instance().lattice().base()}));
  ASSERT_TRUE(launches) << launches.error().text();
  EXPECT_EQ(launches->size(), 1u + 2u * 31u);
  runner.check("base,imma");
}

TEST(LinearTextsOnHost, IntegerProductsOfEveryPrecision) {
  Runner("gemm", gemm(48, 80, 96)).check("dp4a,imma-basic,bf16-basic,fp16-basic");
  Runner("gemm", gemm(128, 128, 192)).check("imma,fp16,imma-t64,bf16-t64-st3");
}

TEST(LinearTextsOnHost, AnyShapeInInt64) {
  Runner("gemm", gemm(1, 1, 1)).check("base");
  Runner("gemm", gemm(67, 131, 17)).check("base");
  // Operands whose products pass 2^63: all is modulo 2^64.
  Runner("gemm", {{"m", 5}, {"n", 6}, {"k", 40}, {"operand_max", std::int64_t{1} << 62}}).check("base");
}

TEST(LinearTextsOnHost, TheEndsOfInt8) {
  Runner("gemm", {{"m", 64}, {"n", 64}, {"k", 128}, {"operand_max", 128}}).check("dp4a,imma-t64,imma-basic");
}

TEST(LinearTextsOnHost, RealProducts) {
  Runner("gemm_real", gemm(77, 50, 33)).check("base");
  Runner("gemm_real", gemm(64, 64, 96)).check("bf16-t64,fp16-basic");
}

// Rows are compared one by one: the norm of all of them hides what is wrong in a small one.
TEST(LinearTextsOnHost, RowsOfDenormalScalesAndExtremesAreRightEach) {
  constexpr std::size_t kN = 48, kK = 640;
  Runner runner("gemv", gemv(kN, kK, 2));
  const auto& instance = runner.instance();
  const auto points = instance.select("base,imma,f64", {});
  ASSERT_TRUE(points) << points.error().text();
  auto inputs = instance.timed_inputs(9, *points);
  ASSERT_TRUE(inputs) << inputs.error().text();
  const auto& program = instance.program();
  std::vector<Bytes> expected(program.arguments.size());
  ASSERT_TRUE(program.recipe->reference(program, inputs->problem, inputs->bytes, expected));
  const std::size_t y = *program.argument_index("y"), weights = *program.argument_index("weights");
  for (const lattice::Point& point : *points) {
    const auto got = runner.run(point, *inputs);
    ASSERT_TRUE(got) << got.error().text();
    for (std::size_t i = 0; i < 2 * kN; ++i) {
      // The sum of magnitudes of a row bounds what cancelled.
      double scale = 0;
      for (std::size_t block = 0; block < kK / 32; ++block) {
        const auto half =
            load_le<std::uint16_t>(inputs->bytes[weights].data() + (i % kN * kK / 32 + block) * 34);
        const double value =
            half < 1024 ? std::ldexp(half, -24) : std::ldexp(1024 + (half & 1023), (half >> 10) - 25);
        scale += value * 32 * 64;
      }
      const double difference = std::fabs(static_cast<double>(load_le<float>((*got)[y].data() + 4 * i)) -
                                          static_cast<double>(load_le<float>(expected[y].data() + 4 * i)));
      EXPECT_LE(difference, 2e-4 * scale)
          << lattice::variant_name(instance.lattice(), point) << " row " << i % kN;
    }
  }
}

// An activation that is no number must not come out as one.
TEST(LinearTextsOnHost, NotANumberStaysNone) {
  Runner runner("gemv", gemv(20, 96, 1));
  const auto& instance = runner.instance();
  const auto points = instance.select("base,imma,f64", {});
  ASSERT_TRUE(points) << points.error().text();
  auto inputs = instance.timed_inputs(3, *points);
  ASSERT_TRUE(inputs) << inputs.error().text();
  const std::size_t x = *instance.program().argument_index("x"), y = *instance.program().argument_index("y");
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    store_le(inputs->bytes[x].data() + 4 * 40, bad);
    for (const lattice::Point& point : *points) {
      const auto got = runner.run(point, *inputs);
      ASSERT_TRUE(got) << got.error().text();
      for (std::size_t i = 0; i < 20; ++i)
        EXPECT_FALSE(std::isfinite(load_le<float>((*got)[y].data() + 4 * i)))
            << lattice::variant_name(instance.lattice(), point) << " row " << i;
    }
  }
}

// A wrong text must not pass: each planted fault is found.
TEST(LinearTextsOnHost, PlantedFaultsAreFound) {
  struct Fault {
    std::string_view program, variant, from, to;
  };
  for (const Fault& fault :
       {Fault{"gemv", "base", "at / BLOCK_WEIGHTS) : 0u", "(at / BLOCK_WEIGHTS ^ 1u)) : 0u"},
        Fault{"gemv", "base", "sum * 128 +", "sum * 127 +"},
        Fault{"gemv", "imma", "lane / 4u + (part & 1u) * 8u", "lane / 4u"},
        Fault{"gemm", "imma-t64", "half * 2u + lane / 16u));", "half * 2u));"},
        Fault{"gemm", "dp4a", "row0 + row < m && at < words ?", "row0 + row < m && at + 1u < words ?"}}) {
    const bool vector = fault.program == "gemv";
    // An edge of k that is no whole block; x is 0 beyond k, so that a weight there counts only where x is
    // read there.
    Runner runner(std::string(fault.program), vector ? gemv(40, 100, 1) : gemm(64, 64, 64));
    const auto& instance = runner.instance();
    const auto points = instance.select(fault.variant, runner.allowed());
    ASSERT_TRUE(points) << points.error().text();
    auto inputs = instance.timed_inputs(4, *points);
    ASSERT_TRUE(inputs) << inputs.error().text();
    const auto& program = instance.program();
    std::vector<Bytes> expected(program.arguments.size());
    ASSERT_TRUE(program.recipe->reference(program, inputs->problem, inputs->bytes, expected));
    const auto got = runner.run(points->back(), *inputs, fault.from, fault.to);
    ASSERT_TRUE(got) << got.error().text();
    const auto check = instance.check(points->back());
    ASSERT_TRUE(check) << check.error().text();
    const std::size_t output = *program.argument_index(vector ? "y" : "c");
    EXPECT_FALSE(program::compare_output(*check, program.arguments[output], (*got)[output], expected[output]))
        << fault.to;
  }
}

lattice::Environment facts_of(const program::linear::Chip& chip) {
  return {{"device.sm", chip.sm},
          {"device.arch", chip.arch},
          {"device.vendor", "NVIDIA"},
          {"device.backend", "cuda"},
          {"device.warp", 32},
          {"device.max_threads", 1024},
          {"device.shared_bytes", static_cast<std::int64_t>(chip.shared_optin_bytes)},
          {"device.multiprocessors", chip.multiprocessors},
          {"device.memory_mib", static_cast<std::int64_t>(chip.memory_bytes >> 20)}};
}

// The lock: nobody adds a knob, a value or a sentence that breaks the discipline.
TEST(LinearLattices, LintIsClean) {
  const program::linear::Chip* chip = *program::linear::find_chip("h200");
  for (const char* name : {"gemv", "gemm", "gemm_real"}) {
    const auto instance = Instance::make(shipped(name), "cuda", {}, facts_of(*chip));
    ASSERT_TRUE(instance) << instance.error().text();
    lattice::LintOptions options{.known_names = {}, .facts = instance->facts(), .user_file = false};
    for (const auto& [parameter, value] : instance->problem()) options.known_names.push_back(parameter);
    for (const std::string& fact : program::device_fact_names()) options.known_names.push_back(fact);
    for (const auto& finding : lattice::lint(instance->lattice(), options))
      ADD_FAILURE() << name << ": " << finding.where << ": " << finding.what;
    for (const lattice::Knob& knob : instance->lattice().knobs)
      EXPECT_NE(knob.evidence.find("bench/card/linear.sh"), std::string::npos) << name << " " << knob.name;
  }
}

#ifndef FURLONG_WITHOUT_DEVICE_CUDA
/// All points of a lattice, or `sample` of them, with the facts of a chip.
std::vector<lattice::Point> points_of(const Instance& instance, std::size_t sample, std::uint64_t seed) {
  const auto space = lattice::Space::build(instance.lattice(), instance.facts());
  EXPECT_TRUE(space) << space.error().text();
  std::vector<lattice::Point> points;
  if (!space) return points;
  Random random(seed);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(sample, space->count()); ++i)
    points.push_back(space->count() <= sample ? space->at(i) : space->random(random));
  return points;
}

// For every chip of the table, present or not: what the emitter makes compiles, without spilling and within
// the registers and the shared memory that the constraints promise. FURLONG_ALL_POINTS=1 takes every point.
TEST(LinearTextsWithNvrtc, PointsCompileForEveryChip) {
  const auto nvrtc = device::Nvrtc::open();
  if (!nvrtc && nvrtc.error().code() == Code::unavailable) GTEST_SKIP() << nvrtc.error().text();
  ASSERT_TRUE(nvrtc) << nvrtc.error().text();
  const auto known = nvrtc->architectures();
  const char* all = std::getenv("FURLONG_ALL_POINTS");
  const std::size_t sample = all != nullptr ? 1'000'000 : 5;
  // An assembler that trades a few for more blocks is not out of registers.
  constexpr std::uint64_t most_spilled = 64;
  std::size_t compiled = 0;
  for (const auto& chip : program::linear::chips()) {
    if (std::find(known.begin(), known.end(), chip.arch) == known.end()) continue;  // an older NVRTC
    for (const auto& [name, problem] : {std::pair{"gemv", gemv(4096, 4096, 8)},
                                        {"gemm", gemm(1024, 1024, 1024)},
                                        {"gemm_real", gemm(1024, 1024, 1024)}}) {
      auto instance = Instance::make(shipped(name), "cuda", problem, facts_of(chip));
      ASSERT_TRUE(instance) << instance.error().text();
      std::set<Digest> texts;
      for (const lattice::Point& point : points_of(*instance, sample, static_cast<std::uint64_t>(chip.sm))) {
        const auto plan = instance->plan(point);
        ASSERT_TRUE(plan) << plan.error().text();
        if (!texts.insert(plan->source_hash).second) continue;
        const auto cubin = nvrtc->compile(race::compile_request(*instance, *plan, 0), chip.arch);
        ASSERT_TRUE(cubin) << chip.name << " " << name << " " << plan->name << ": " << cubin.error().text();
        EXPECT_LE(cubin->spill_bytes.value_or(0), most_spilled)
            << chip.name << " " << name << " " << plan->name;
        EXPECT_LE(cubin->shared_bytes.value_or(0), chip.shared_bytes)
            << chip.name << " " << name << " " << plan->name;
        ++compiled;
      }
    }
  }
  EXPECT_GT(compiled, 20u);
}
#endif

}  // namespace
}  // namespace furlong
