#include "furlong/device/cuda/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/device/conformance/conformance.h"

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

CompileRequest request(std::string source, std::vector<std::string> entries) {
  CompileRequest made;
  made.language = Language::cuda;
  made.name = "test";
  made.source = std::move(source);
  made.source_name = "mine.cu";
  made.entries = std::move(entries);
  return made;
}

constexpr const char* kSaxpy =
    "extern \"C\" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n}\n";

/// Skipped, by name, where NVRTC is not installed.
class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Nvrtc::open();
    if (!opened && opened.error().code() == Code::unavailable) GTEST_SKIP() << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    nvrtc_.emplace(std::move(*opened));
  }
  const Nvrtc& nvrtc() const { return *nvrtc_; }
  std::optional<Nvrtc> nvrtc_;
};

TEST_F(NvrtcTest, TellsItsVersionAndArchitectures) {
  EXPECT_GE(nvrtc().major(), 11);
  EXPECT_THAT(nvrtc().version(), HasSubstr(fmt::format("NVRTC {}.", nvrtc().major())));
  EXPECT_FALSE(nvrtc().name().empty());
  const auto archs = nvrtc().architectures();
  ASSERT_FALSE(archs.empty());
  EXPECT_NE(std::find(archs.begin(), archs.end(), "sm_80"), archs.end());
}

TEST_F(NvrtcTest, MakesMachineCodeAndTellsRegisters) {
  const auto cubin = nvrtc().compile(request(kSaxpy, {"saxpy"}), "sm_80");
  ASSERT_TRUE(cubin) << cubin.error().text();
  ASSERT_GT(cubin->image.size(), 64u);
  EXPECT_EQ(as_text(cubin->image).substr(0, 4), "\177ELF");
  EXPECT_EQ(cubin->lowered, std::vector<std::string>{"saxpy"});
  ASSERT_TRUE(cubin->registers) << cubin->log;
  EXPECT_GE(*cubin->registers, 4);
  EXPECT_EQ(cubin->spill_bytes, 0u);
  EXPECT_EQ(cubin->shared_bytes, 0u);
  EXPECT_EQ(cubin->code_hash.size(), 32u);
  EXPECT_GT(cubin->compile_ms, 0);
}

TEST_F(NvrtcTest, EveryArchitectureItNamesCompiles) {
  for (const std::string& arch : nvrtc().architectures()) {
    const auto cubin = nvrtc().compile(request(kSaxpy, {"saxpy"}), arch);
    EXPECT_TRUE(cubin) << arch << ": " << cubin.error().text();
  }
}

// Forty values live at once do not fit 24 registers.
CompileRequest crowded(int rounds) {
  CompileRequest made = request(R"(
__global__ void k(float* y) {
  __shared__ float tile[1000];
  float many[40];
  for (int i = 0; i < 40; ++i) many[i] = y[i * 1024 + threadIdx.x];
  tile[threadIdx.x % 1000] = many[3];
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < ROUNDS; ++j)
    #pragma unroll
    for (int i = 0; i < 40; ++i) many[i] = fmaf(many[(i + 7) % 40], many[(i * 3 + j) % 40], tile[i]);
  for (int i = 0; i < 40; ++i) y[i * 1024 + threadIdx.x] = many[i];
})",
                                {"k"});
  made.defines = {{"ROUNDS", std::to_string(rounds)}};
  made.options = {"--maxrregcount=24"};
  return made;
}

TEST_F(NvrtcTest, SharedMemoryAndSpillsAreTold) {
  const auto cubin = nvrtc().compile(crowded(2), "sm_80");
  ASSERT_TRUE(cubin) << cubin.error().text();
  EXPECT_EQ(cubin->shared_bytes, 4000u) << cubin->log;
  EXPECT_EQ(cubin->registers, 24) << cubin->log;
  ASSERT_TRUE(cubin->spill_bytes);
  EXPECT_GT(*cubin->spill_bytes, 0u) << cubin->log;
}

// The reason for a constraint in every lattice that has both knobs (register_cap, min_blocks of the lottery).
TEST_F(NvrtcTest, LaunchBoundsSilentlyOverrideARegisterCap) {
  // 48 sums that live across the loop: more than a cap of 32 registers holds.
  std::string source =
      "extern \"C\" __global__ void BOUNDS hungry(const unsigned* x, unsigned* y, unsigned n) {\n";
  std::string sums;
  std::string out = "  y[blockIdx.x * blockDim.x + threadIdx.x] = 0u";
  for (int i = 0; i < 48; ++i) {
    source += fmt::format("  unsigned a{0} = x[threadIdx.x + {0}];\n", i);
    sums += fmt::format("    a{0} = a{0} * 33u + (a{1} ^ k);\n", i, (i + 7) % 48);
    out += fmt::format(" + a{}", i);
  }
  source += "#pragma unroll 1\n  for (unsigned k = 0; k < n; ++k) {\n" + sums + "  }\n" + out + ";\n}\n";
  const auto registers = [&](const char* bounds, const std::vector<std::string>& options) {
    CompileRequest made = request(source, {"hungry"});
    made.defines = {{"BOUNDS", bounds}};
    made.options = options;
    const auto cubin = nvrtc().compile(made, "sm_80");
    EXPECT_TRUE(cubin) << cubin.error().text();
    return cubin ? cubin->registers.value_or(-1) : -1;
  };
  const int free = registers("", {});
  ASSERT_GT(free, 32);
  EXPECT_LE(registers("", {"--maxrregcount=32"}), 32);
  const int bound = registers("__launch_bounds__(128, 4)", {});
  EXPECT_GT(bound, 32);
  EXPECT_EQ(registers("__launch_bounds__(128, 4)", {"--maxrregcount=32"}), bound) << "the cap is heard now";
}

// Half-way where the library can be stopped, at its end where it cannot.
TEST_F(NvrtcTest, ACompileIsStoppedWhileItRuns) {
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop.request_stop();
  });
  const auto stopped = nvrtc().compile(crowded(30), "sm_80", stop.get_token());
  stopper.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::timeout);
}

TEST_F(NvrtcTest, FindsTheToolkitsHeaders) {
  const auto cubin = nvrtc().compile(
      request("#include <cuda_fp16.h>\n__global__ void k(__half* y) { y[0] = __hadd(y[1], y[2]); }", {"k"}),
      "sm_80");
  if (!cubin && cubin.error().text().find("could not open source file") != std::string::npos) {
    GTEST_SKIP() << "the toolkit's headers are not installed beside " << nvrtc().name();
  }
  EXPECT_TRUE(cubin) << cubin.error().text();
}

TEST_F(NvrtcTest, TemplatesHaveLoweredNames) {
  const auto cubin = nvrtc().compile(
      request("template <int N> __global__ void add(int* y) { y[threadIdx.x] += N; }", {"add<3>", "add<4>"}),
      "sm_80");
  ASSERT_TRUE(cubin) << cubin.error().text();
  ASSERT_EQ(cubin->lowered.size(), 2u);
  EXPECT_NE(cubin->lowered[0], cubin->lowered[1]);
  EXPECT_THAT(std::string(as_text(cubin->image)), HasSubstr(cubin->lowered[0]));
}

TEST_F(NvrtcTest, ErrorsCarryTheLogWithFileAndLine) {
  const auto failed =
      nvrtc().compile(request("\n__global__ void k(int* y) {\n  y[0] = nonsense;\n}\n", {"k"}), "sm_80");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_THAT(failed.error().text(), HasSubstr("mine.cu(3)"));
  EXPECT_THAT(failed.error().text(), HasSubstr("nonsense"));
  const auto absent = nvrtc().compile(request(kSaxpy, {"saxpi"}), "sm_80");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::invalid);
  EXPECT_THAT(absent.error().text(), HasSubstr("saxpi"));
}

TEST_F(NvrtcTest, UnknownArchitecturesAndOptionsAreInvalid) {
  for (const char* arch : {"sm_12", "sm_", "compute_80", "gfx1100"}) {
    const auto failed = nvrtc().compile(request(kSaxpy, {"saxpy"}), arch);
    ASSERT_FALSE(failed) << arch;
    EXPECT_EQ(failed.error().code(), Code::invalid) << failed.error().text();
  }
  CompileRequest made = request(kSaxpy, {"saxpy"});
  made.options = {"--no-such-option"};
  const auto failed = nvrtc().compile(made, "sm_80");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_THAT(failed.error().text(), HasSubstr("no-such-option"));
  made.options.clear();
  made.language = Language::opencl;
  EXPECT_FALSE(nvrtc().compile(made, "sm_80"));
}

TEST_F(NvrtcTest, DefinesAndIncludeFoldersReachTheCompiler) {
  auto folder = TemporaryFolder::make("furlong-nvrtc-test");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(system_files().write_atomic(folder->path() / "part.h", "#define PART 100\n"));
  CompileRequest made = request(
      "#include \"part.h\"\nstatic_assert(PART + VALUE == 121, \"\");\n__global__ void k(int* y) { y[0] = 1; "
      "}",
      {"k"});
  made.include_folders = {folder->path()};
  made.defines = {{"VALUE", "(20 + 1)"}};
  const auto cubin = nvrtc().compile(made, "sm_80");
  EXPECT_TRUE(cubin) << cubin.error().text();
}

TEST_F(NvrtcTest, EqualTextsGiveEqualCode) {
  const auto first = nvrtc().compile(request(kSaxpy, {"saxpy"}), "sm_80");
  const auto second = nvrtc().compile(request(std::string("// a comment\n") + kSaxpy, {"saxpy"}), "sm_80");
  const auto other =
      nvrtc().compile(request(replace_all(kSaxpy, "a * x[i]", "a / x[i]"), {"saxpy"}), "sm_80");
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ(first->code_hash, second->code_hash);
  EXPECT_NE(first->code_hash, other->code_hash);
}

TEST_F(NvrtcTest, TheConformanceKernelsCompile) {
  const auto suite = conformance_request({Language::cuda});
  ASSERT_TRUE(suite);
  const auto cubin = nvrtc().compile(*suite, "sm_80");
  ASSERT_TRUE(cubin) << cubin.error().text();
  EXPECT_EQ(cubin->lowered, suite->entries);
}

TEST_F(NvrtcTest, CompilesOnSeveralThreads) {
  std::array<bool, 3> good{};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < good.size(); ++i) {
      threads.emplace_back([&, i] {
        CompileRequest made = request("__global__ void k(int* y) { y[0] = VALUE; }", {"k"});
        made.defines = {{"VALUE", std::to_string(i)}};
        good[i] = nvrtc().compile(made, "sm_80").has_value();
      });
    }
  }
  EXPECT_EQ(good, (std::array<bool, 3>{true, true, true}));
}

TEST_F(NvrtcTest, AStoppedCompileIsATimeout) {
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = nvrtc().compile(request(kSaxpy, {"saxpy"}), "sm_80", stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::timeout);
}

TEST(Nvrtc, AChosenLibraryThatIsNotThereIsUnavailable) {
  setenv("FURLONG_NVRTC", "/nowhere/libnvrtc.so", 1);
  const auto opened = Nvrtc::open();
  unsetenv("FURLONG_NVRTC");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::unavailable);
  EXPECT_THAT(opened.error().text(), HasSubstr("FURLONG_NVRTC"));
}

TEST(Nvrtc, ALibraryWithoutItsFunctionsIsIncompatible) {
  const auto opened = Nvrtc::open("libm.so.6");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::incompatible);
  EXPECT_THAT(opened.error().text(), HasSubstr("nvrtcVersion"));
}

}  // namespace
}  // namespace furlong::device
