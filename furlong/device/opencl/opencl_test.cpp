#include "furlong/device/opencl/opencl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "furlong/base/os/file.h"
#include "furlong/device/conformance/gtest.h"
#include "furlong/device/opencl/internal/facts.h"
#include "furlong/device/opencl/internal/module.h"

namespace furlong::device {

FURLONG_CONFORMANCE(opencl, make_opencl_driver());

namespace {

using ::testing::HasSubstr;

// PoCL's own cache, away from the user's, and shared by all test programs, each of which runs one test.
const std::string kTestCache =
    (std::filesystem::temp_directory_path() / fmt::format("furlong-opencl-tests-{}", getuid())).string();
const int kTestCacheChosen = setenv("POCL_CACHE_DIR", kTestCache.c_str(), 1);

class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_ = make_opencl_driver();
    auto device = driver_->open(0);
    if (!device && device.error().code() == Code::unavailable) GTEST_SKIP() << device.error().text();
    ASSERT_TRUE(device) << device.error().text();
    device_ = std::move(*device);
  }
  static CompileRequest request(std::string source, std::string entry) {
    CompileRequest made;
    made.language = Language::opencl;
    made.name = "test";
    made.source = std::move(source);
    made.source_name = "mine.cl";
    made.entries = {std::move(entry)};
    return made;
  }
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
};

TEST_F(OpenClTest, TheRequiredWorkGroupSizeIsNamed) {
  auto module =
      device_->compile(request("__attribute__((reqd_work_group_size(8, 2, 1))) __kernel void k(__global int* "
                               "y) { y[get_global_id(0)] = 1; }",
                               "k"));
  ASSERT_TRUE(module) << module.error().text();
  auto out = device_->allocate(4096);
  ASSERT_TRUE(out);
  Launch launch{module->get(), "k", {1, 1, 1}, {16, 1, 1}, 0, {BufferArgument{out->get()}}};
  const Status refused = device_->launch(launch);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);
  EXPECT_THAT(refused.error().text(), HasSubstr("16x1x1"));
  EXPECT_THAT(refused.error().text(), HasSubstr("8x2x1"));
  launch.block = {8, 2, 1};
  EXPECT_TRUE(device_->launch(launch));
  EXPECT_TRUE(device_->finish());
}

TEST_F(OpenClTest, LocalParametersAndDynamicSharedMemoryAreRefused) {
  auto module = device_->compile(
      request("__kernel void k(__global int* y, __local int* t) { t[0] = 1; y[0] = t[0]; }", "k"));
  ASSERT_TRUE(module) << module.error().text();
  auto out = device_->allocate(4096);
  ASSERT_TRUE(out);
  Launch launch{module->get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out->get()}, Bytes(4)}};
  Status refused = device_->launch(launch);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);
  launch.shared_bytes = 1024;
  refused = device_->launch(launch);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("1024"));
}

TEST_F(OpenClTest, LocalMemoryAndBarriersWorkAndAreReported) {
  auto module = device_->compile(request(R"(
__kernel void reverse(__global int* y) {
  __local int tile[64];
  const int i = get_local_id(0);
  tile[i] = y[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = tile[63 - i];
})",
                                         "reverse"));
  ASSERT_TRUE(module) << module.error().text();
  ASSERT_TRUE((*module)->facts().shared_bytes);
  EXPECT_GE(*(*module)->facts().shared_bytes, 256u);
  std::vector<int> values(128);
  for (int i = 0; i < 128; ++i) values[static_cast<std::size_t>(i)] = i;
  auto buffer = device_->allocate(512);
  ASSERT_TRUE(buffer);
  ASSERT_TRUE((*buffer)->write(0, {reinterpret_cast<std::uint8_t*>(values.data()), 512}));
  ASSERT_TRUE(
      device_->launch({module->get(), "reverse", {2, 1, 1}, {64, 1, 1}, 0, {BufferArgument{buffer->get()}}}));
  ASSERT_TRUE(device_->finish());
  ASSERT_TRUE((*buffer)->read(0, {reinterpret_cast<std::uint8_t*>(values.data()), 512}));
  for (int i = 0; i < 128; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i / 64 * 64 + 63 - i % 64);
}

TEST_F(OpenClTest, DefinesWithSpacesAndIncludeFoldersReachTheBuild) {
  auto folder = TemporaryFolder::make("furlong-opencl-include");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(system_files().write_atomic(folder->path() / "part.h", "#define PART 100\n"));
  CompileRequest made =
      request("#include \"part.h\"\n__kernel void k(__global int* y) { y[0] = PART + VALUE + OTHER; }", "k");
  made.include_folders = {folder->path()};
  made.defines = {{"VALUE", "(20 + 1)"}};
  made.options = {"-DOTHER=3"};
  auto module = device_->compile(made);
  ASSERT_TRUE(module) << module.error().text();
  auto out = device_->allocate(4);
  ASSERT_TRUE(out);
  ASSERT_TRUE(device_->launch({module->get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out->get()}}}));
  int value = 0;
  ASSERT_TRUE((*out)->read(0, {reinterpret_cast<std::uint8_t*>(&value), 4}));
  EXPECT_EQ(value, 124);
}

// PoCL compiles again at the first launch of each local size: 50 to 120 ms, outside the device's clock. What
// is checked is only that the time of a first call is the device's.
TEST_F(OpenClTest, EveryLocalSizeIsTimedByTheDevicesClock) {
  auto module =
      device_->compile(request("__kernel void k(__global int* y) { y[get_global_id(0)] += 1; }", "k"));
  ASSERT_TRUE(module);
  auto out = device_->allocate(4 * 64);
  ASSERT_TRUE(out);
  for (std::uint64_t local : {1, 2, 64}) {
    const Launch launch{module->get(), "k", {64 / local, 1, 1},
                        {local, 1, 1}, 0,   {BufferArgument{out->get()}}};
    const auto times = device_->time({{&launch, 1}, 3, 2, nullptr});
    ASSERT_TRUE(times) << times.error().text();
    for (double ms : *times) EXPECT_GT(ms, 0);
  }
}

TEST(OpenClFacts, NamesBecomeKeys) {
  EXPECT_EQ(cl::vendor_word("NVIDIA Corporation"), "NVIDIA");
  EXPECT_EQ(cl::vendor_word("Advanced Micro Devices, Inc."), "AMD");
  EXPECT_EQ(cl::vendor_word("GenuineIntel"), "Intel");
  EXPECT_EQ(cl::vendor_word("Intel(R) Corporation"), "Intel");
  EXPECT_EQ(cl::vendor_word(""), "unknown");
  EXPECT_EQ(cl::label_of("  NVIDIA  GeForce RTX 5090 "), "NVIDIA_GeForce_RTX_5090");
  EXPECT_EQ(cl::pocl_arch("OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-skylake-avx512"),
            "x86_64-pc-linux-gnu-skylake-avx512");
  EXPECT_EQ(cl::pocl_arch("OpenCL 2.0 pocl HSTR: cpu-aarch64-linux-gnu-generic"),
            "aarch64-linux-gnu-generic");
  EXPECT_EQ(cl::pocl_arch("OpenCL 3.0 CUDA"), "");
}

TEST(OpenClModule, KnowsTheSizesOfBuiltInTypes) {
  EXPECT_EQ(cl::type_bytes("uint"), 4u);
  EXPECT_EQ(cl::type_bytes("unsigned int"), 4u);
  EXPECT_EQ(cl::type_bytes("float3"), 16u);
  EXPECT_EQ(cl::type_bytes("uchar16"), 16u);
  EXPECT_EQ(cl::type_bytes("long8"), 64u);
  EXPECT_EQ(cl::type_bytes("float5"), 0u);
  EXPECT_EQ(cl::type_bytes("struct thing"), 0u);
  EXPECT_EQ(cl::type_bytes(""), 0u);
}

TEST(OpenClModule, OptionsWithoutQuotingAreRefused) {
  CompileRequest made;
  made.name = "mine";
  made.include_folders = {"/a folder"};
  const auto refused = cl::option_text(made, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);
  made.include_folders = {"/a"};
  made.options = {"-cl-mad-enable"};
  EXPECT_EQ(*cl::option_text(made, true), "-cl-kernel-arg-info -cl-nv-verbose -I/a -cl-mad-enable");
}

TEST(OpenClErrors, AreNamedAndSorted) {
  EXPECT_EQ(cl::error_name(-54), "CL_INVALID_WORK_GROUP_SIZE (-54)");
  EXPECT_EQ(cl::error_name(-7777), "OpenCL error -7777");
  EXPECT_EQ(cl::error_of(-4, "x").code(), Code::exhausted);
  EXPECT_EQ(cl::error_of(-48, "x").code(), Code::internal);
}

}  // namespace
}  // namespace furlong::device
