#include "furlong/device/opencl/opencl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "furlong/base/os/file.h"
#include "furlong/base/os/memory.h"
#include "furlong/device/conformance/gtest.h"
#include "furlong/device/opencl/internal/device.h"
#include "furlong/device/opencl/internal/facts.h"
#include "furlong/device/opencl/internal/module.h"
#include "furlong/device/silicon.h"

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
  // PoCL 3.1 and NVIDIA know it, newer PoCL does not; what is never right is less.
  EXPECT_GE((*module)->facts().shared_bytes.value_or(256), 256u);
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

// PoCL's program binary holds every work-group function that it has compiled so far.
TEST_F(OpenClTest, TheCodeHashIsTheSameAfterALaunch) {
  const CompileRequest made =
      request("__kernel void k(__global int* y) { y[get_global_id(0)] += 12321; }", "k");
  auto out = device_->allocate(4 * 1024);
  ASSERT_TRUE(out);
  std::set<std::string> hashes;
  for (std::uint64_t local : {1, 3, 96}) {
    auto module = device_->compile(made);
    ASSERT_TRUE(module) << module.error().text();
    hashes.insert((*module)->facts().code_hash);
    const Launch launch{module->get(), "k", {2, 1, 1}, {local, 1, 1}, 0, {BufferArgument{out->get()}}};
    ASSERT_TRUE(device_->launch(launch));
    ASSERT_TRUE(device_->finish());
  }
  EXPECT_EQ(hashes.size(), 1u);
}

// What runs before the timed launches is seen in the count.
TEST_F(OpenClTest, EveryKernelOfPoClIsWarmedBeforeItIsTimedWhateverWasBefore) {
  if (device_->facts().compiler.find("PoCL") == std::string::npos &&
      device_->facts().compiler.find("pocl") == std::string::npos)
    GTEST_SKIP() << "only PoCL compiles at a first launch";
  auto out = device_->allocate(4);
  ASSERT_TRUE(out);
  const auto counted = [&](Module& module, std::uint64_t blocks) {
    EXPECT_TRUE((*out)->fill(0, 0, 4));
    const Launch launch{&module, "k", {blocks, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out->get()}}};
    EXPECT_TRUE(device_->time({{&launch, 1}, 1, 1, nullptr}));
    std::uint32_t count = 0;
    EXPECT_TRUE((*out)->read(0, {reinterpret_cast<std::uint8_t*>(&count), 4}));
    return count / blocks;
  };
  const CompileRequest made = request("__kernel void k(volatile __global uint* y) { atomic_inc(y); }", "k");
  // A new module's kernel may well get the address of one that is gone.
  for (int turn = 0; turn < 8; ++turn) {
    auto module = device_->compile(made);
    ASSERT_TRUE(module) << module.error().text();
    EXPECT_EQ(counted(**module, 10), 2u) << turn;
    EXPECT_EQ(counted(**module, 11), 1u) << turn;
  }
  // PoCL has other code for grids of more than 65535 work-items along an axis.
  auto module = device_->compile(made);
  ASSERT_TRUE(module);
  EXPECT_EQ(counted(**module, 10), 2u);
  EXPECT_EQ(counted(**module, 70000), 2u);
  EXPECT_EQ(counted(**module, 80000), 1u);
}

/// What the platform below answers; each test sets its own.
struct Script {
  cl::Int listing = cl::kSuccess, finish = cl::kSuccess, create = cl::kSuccess, fill = cl::kSuccess,
          read = cl::kSuccess, build = cl::kSuccess, argument = cl::kSuccess, view = cl::kSuccess,
          enqueue = cl::kSuccess;
  std::string extensions, log = "the log";
};
Script script;

template <class T>
T handle(std::uintptr_t number) {
  return reinterpret_cast<T>(number);
}

cl::Int put(const void* value, std::size_t bytes, std::size_t room, void* into, std::size_t* needed) {
  if (needed != nullptr) *needed = bytes;
  if (into != nullptr && room < bytes) return -30;
  if (into != nullptr) std::memcpy(into, value, bytes);
  return cl::kSuccess;
}

/// A platform with one device that runs nothing and answers by the script.
const cl::Api& scripted_api() {
  static const cl::Api api = [] {
    cl::Api made;
    made.get_platforms = [](cl::Uint, cl::PlatformId* out, cl::Uint* count) {
      if (out != nullptr) *out = handle<cl::PlatformId>(1);
      if (count != nullptr) *count = 1;
      return cl::Int{cl::kSuccess};
    };
    made.platform_info = [](cl::PlatformId, cl::Uint, std::size_t room, void* into, std::size_t* needed) {
      return put("Scripted", 9, room, into, needed);
    };
    made.get_devices = [](cl::PlatformId, cl::Bits, cl::Uint, cl::DeviceId* out, cl::Uint* count) {
      if (script.listing != cl::kSuccess) return script.listing;
      if (out != nullptr) *out = handle<cl::DeviceId>(1);
      if (count != nullptr) *count = 1;
      return cl::Int{cl::kSuccess};
    };
    made.device_info = [](cl::DeviceId, cl::Uint what, std::size_t room, void* into, std::size_t* needed) {
      const std::array<std::size_t, 3> sizes{64, 64, 64};
      const std::uint64_t large = 1u << 30;
      if (what == cl::kDeviceMaxWorkItemSizes) return put(sizes.data(), sizeof sizes, room, into, needed);
      if (what == cl::kDeviceExtensions)
        return put(script.extensions.c_str(), script.extensions.size() + 1, room, into, needed);
      if (room == 4) return put("\1\0\0", 4, room, into, needed);
      if (room == 8) return put(&large, 8, room, into, needed);
      return put("Scripted card", 14, room, into, needed);
    };
    made.create_context = [](const cl::Properties*, cl::Uint, const cl::DeviceId*,
                             void (*)(const char*, const void*, std::size_t, void*), void*,
                             cl::Int*) { return handle<cl::Context>(1); };
    made.release_context = [](cl::Context) { return cl::Int{cl::kSuccess}; };
    made.create_queue = [](cl::Context, cl::DeviceId, cl::Bits, cl::Int*) { return handle<cl::Queue>(1); };
    made.release_queue = [](cl::Queue) { return cl::Int{cl::kSuccess}; };
    made.create_buffer = [](cl::Context, cl::Bits, std::size_t, void*, cl::Int* code) {
      *code = script.create;
      return handle<cl::Memory>(script.create == cl::kSuccess ? 1 : 0);
    };
    made.create_sub_buffer = [](cl::Memory, cl::Bits, cl::Uint, const void*, cl::Int* code) {
      *code = script.view;
      return handle<cl::Memory>(script.view == cl::kSuccess ? 2 : 0);
    };
    made.release_memory = [](cl::Memory) { return cl::Int{cl::kSuccess}; };
    made.create_program = [](cl::Context, cl::Uint, const char**, const std::size_t*, cl::Int*) {
      return handle<cl::Program>(1);
    };
    made.build_program = [](cl::Program, cl::Uint, const cl::DeviceId*, const char*,
                            void (*)(cl::Program, void*), void*) { return script.build; };
    made.program_info = [](cl::Program, cl::Uint, std::size_t, void*, std::size_t*) { return cl::Int{-30}; };
    made.build_info = [](cl::Program, cl::DeviceId, cl::Uint, std::size_t room, void* into,
                         std::size_t* needed) {
      return put(script.log.c_str(), script.log.size() + 1, room, into, needed);
    };
    made.release_program = [](cl::Program) { return cl::Int{cl::kSuccess}; };
    made.create_kernel = [](cl::Program, const char*, cl::Int*) { return handle<cl::Kernel>(1); };
    made.release_kernel = [](cl::Kernel) { return cl::Int{cl::kSuccess}; };
    made.set_argument = [](cl::Kernel, cl::Uint, std::size_t, const void*) { return script.argument; };
    made.kernel_info = [](cl::Kernel, cl::Uint, std::size_t room, void* into, std::size_t* needed) {
      return put("\1\0\0", 4, room, into, needed);
    };
    made.work_group_info = [](cl::Kernel, cl::DeviceId, cl::Uint, std::size_t, void*, std::size_t*) {
      return cl::Int{-30};
    };
    made.enqueue_kernel = [](cl::Queue, cl::Kernel, cl::Uint, const std::size_t*, const std::size_t*,
                             const std::size_t*, cl::Uint, const cl::Event*,
                             cl::Event*) { return script.enqueue; };
    made.enqueue_read = [](cl::Queue, cl::Memory, cl::Uint, std::size_t, std::size_t, void*, cl::Uint,
                           const cl::Event*, cl::Event*) { return script.read; };
    made.enqueue_fill = [](cl::Queue, cl::Memory, const void*, std::size_t, std::size_t, std::size_t,
                           cl::Uint, const cl::Event*, cl::Event*) { return script.fill; };
    made.flush = [](cl::Queue) { return cl::Int{cl::kSuccess}; };
    made.finish = [](cl::Queue) { return script.finish; };
    return made;
  }();
  return api;
}

class ScriptedOpenCl : public ::testing::Test {
 protected:
  void SetUp() override { script = {}; }
  void TearDown() override { script = {}; }
  static std::unique_ptr<Device> open() {
    return std::move(*cl::ClDevice::open(scripted_api(), cl::find_devices(scripted_api())->at(0)));
  }
  template <class T>
  static void expect_error(const Result<T>& result, Code code, std::string_view part) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code) << result.error().text();
    EXPECT_THAT(result.error().text(), HasSubstr(std::string(part)));
  }
  static CompileRequest text() {
    CompileRequest made;
    made.language = Language::opencl;
    made.name = "mine";
    made.source = "__kernel void k(__global int* y) {}";
    made.entries = {"k"};
    return made;
  }
};

TEST_F(ScriptedOpenCl, ABrokenPlatformIsNamedWhereNoneHasADevice) {
  script.listing = -2;
  expect_error(cl::find_devices(scripted_api()), Code::unavailable, "Scripted: CL_DEVICE_NOT_AVAILABLE (-2)");
  script.listing = cl::kDeviceNotFound;  // no fault: it has none
  const auto none = cl::find_devices(scripted_api());
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST_F(ScriptedOpenCl, ALackOfMemoryIsToldFromAKernelThatFailedBefore) {
  const auto device = open();
  for (cl::Int* where : {&script.create, &script.fill}) {
    *where = cl::kOutOfResources;
    expect_error(device->allocate(4096), Code::exhausted, "4096");
    *where = cl::kInvalidQueue;
    expect_error(device->allocate(4096), Code::internal, "the device was lost");
    *where = cl::kSuccess;
  }
  script.finish = cl::kOutOfResources;
  expect_error(device->allocate(4096), Code::internal, "CL_OUT_OF_RESOURCES");
  EXPECT_EQ(device->memory().used_bytes, 0u);
}

TEST_F(ScriptedOpenCl, AKernelThatFailedIsNoLackOfMemoryWhenItShowsAtATransfer) {
  const auto device = open();
  auto buffer = device->allocate(4096);
  ASSERT_TRUE(buffer);
  Bytes bytes(16);
  script.read = cl::kOutOfResources;
  expect_error((*buffer)->read(0, bytes), Code::internal, "ran out of bounds");
  script.fill = cl::kOutOfResources;
  expect_error((*buffer)->fill(0, 0, 16), Code::internal, "ran out of bounds");
  script.read = cl::kOutOfHostMemory;
  expect_error((*buffer)->read(0, bytes), Code::exhausted, "CL_OUT_OF_HOST_MEMORY");
}

TEST_F(ScriptedOpenCl, OnlyTheTextsOwnFaultsAreInvalid) {
  const auto device = open();
  for (const auto& [code, meant] : {std::pair<cl::Int, Code>{-11, Code::invalid},
                                    {-43, Code::invalid},
                                    {cl::kOutOfResources, Code::invalid},
                                    {cl::kCompilerNotAvailable, Code::unavailable},
                                    {cl::kDeviceNotAvailable, Code::unavailable},
                                    {cl::kInvalidContext, Code::internal},
                                    {cl::kOutOfHostMemory, Code::exhausted}}) {
    script.build = code;
    expect_error(device->compile(text()), meant, cl::error_name(code));
  }
}

// A second race would else report no spills where the first reported some.
TEST_F(ScriptedOpenCl, WhatACachedBuildDoesNotTellIsUnknown) {
  script.extensions = "cl_khr_fp64 cl_nv_compiler_options";
  script.log = "ptxas info : Used 40 registers\n 16 bytes spill stores, 24 bytes spill loads";
  const auto device = open();
  const auto fresh = device->compile(text());
  ASSERT_TRUE(fresh);
  EXPECT_EQ((*fresh)->facts().registers, 40);
  EXPECT_EQ((*fresh)->facts().spill_bytes, 40u);
  EXPECT_FALSE((*fresh)->facts().from_cache);
  script.log = "";
  const auto cached = device->compile(text());
  ASSERT_TRUE(cached);
  EXPECT_EQ((*cached)->facts().registers, std::nullopt);
  EXPECT_EQ((*cached)->facts().spill_bytes, std::nullopt);
  EXPECT_TRUE((*cached)->facts().from_cache);
  script.extensions = "";
  const auto other = open()->compile(text());
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->facts().spill_bytes, 0u);  // the private memory, by the platform's word
}

TEST_F(ScriptedOpenCl, WhatThePlatformRefusesOfALaunchIsInvalid) {
  const auto device = open();
  auto module = device->compile(text());
  ASSERT_TRUE(module) << module.error().text();
  auto buffer = device->allocate(4096);
  ASSERT_TRUE(buffer);
  const Launch launch{module->get(), "k", {3, 1, 1}, {1, 1, 1}, 0, {BufferArgument{buffer->get()}}};
  for (const cl::Int code : {-52, -53, -54, -55, -56, -63}) {
    script.enqueue = code;
    expect_error(device->launch(launch), Code::invalid, "3x1x1");
  }
  script.enqueue = cl::kOutOfResources;
  expect_error(device->launch(launch), Code::exhausted, "registers");
  script.enqueue = cl::kInvalidQueue;
  expect_error(device->launch(launch), Code::internal, "the device was lost");
  script.enqueue = cl::kSuccess;
  for (const cl::Int code : {-49, -50, -51}) {
    script.argument = code;
    expect_error(device->launch(launch), Code::invalid, "argument 0");
  }
}

// What a device reports as its alignment is no help: an H200 says 512 bytes and takes 256.
TEST_F(ScriptedOpenCl, AnOffsetThatTheDeviceRefusesIsInvalid) {
  const auto device = open();
  auto module = device->compile(text());
  ASSERT_TRUE(module);
  auto buffer = device->allocate(4096);
  ASSERT_TRUE(buffer);
  const Launch launch{module->get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{buffer->get(), 768}}};
  EXPECT_TRUE(device->launch(launch));
  script.view = cl::kMisalignedSubBuffer;
  Launch other = launch;
  other.arguments = {BufferArgument{buffer->get(), 1280}};
  expect_error(device->launch(other), Code::invalid, "larger steps");
}

TEST(OpenClFacts, ACpusSiliconHasTheMachinesMemoryAndNotWhatIsFree) {
  const auto driver = make_opencl_driver();
  bool any = false;
  for (const Facts& facts : driver->list().value_or(std::vector<Facts>{})) {
    if (!facts.runs_on_host_cpu) continue;
    any = true;
    EXPECT_NEAR(static_cast<double>(facts.silicon.memory_bytes), static_cast<double>(total_memory_bytes()),
                0.5 * (std::uint64_t{1} << 30));
  }
  if (!any) GTEST_SKIP() << "no CPU behind OpenCL";
}

TEST(OpenClFacts, NamesBecomeKeys) {
  EXPECT_EQ(cl::vendor_word("NVIDIA Corporation"), "NVIDIA");
  EXPECT_EQ(cl::vendor_word("Advanced Micro Devices, Inc."), "AMD");
  EXPECT_EQ(cl::vendor_word("GenuineIntel"), "Intel");
  EXPECT_EQ(cl::vendor_word("Intel(R) Corporation"), "Intel");
  EXPECT_EQ(cl::vendor_word(""), "unknown");
  EXPECT_EQ(label_of("  NVIDIA  GeForce RTX 5090 "), "NVIDIA_GeForce_RTX_5090");
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
  made.include_folders = {std::filesystem::path()};
  EXPECT_EQ(cl::option_text(made, false).error().code(), Code::invalid);
  made.include_folders = {"/a"};
  for (const char* option : {"-DNAME=a b", "-cl-mad-enable -DNAME=a b", "-I /a folder"}) {
    made.options = {option};
    const auto cut = cl::option_text(made, false);
    ASSERT_FALSE(cut) << option;
    EXPECT_THAT(cut.error().text(), HasSubstr(option));
  }
  made.options = {"-cl-mad-enable -w "};
  EXPECT_TRUE(cl::option_text(made, false));
  made.options = {"-cl-mad-enable"};
  EXPECT_EQ(*cl::option_text(made, true), "-cl-kernel-arg-info -cl-nv-verbose -I/a -cl-mad-enable");
}

TEST(OpenClModule, PoClsBuildHashIsReadFromTheHeadAlone) {
  const auto hash = [](std::string_view binary) { return cl::pocl_build_hash(as_bytes(binary)); };
  const std::string head = std::string("poclbin") + '\0' + "\x0c{0]" + std::string(10, '\1');
  const std::string one = head + "DN/DPEABNBIOJKCDCPHDGBJGJHNDFHBIBFDOMPJI" + '\0';
  EXPECT_EQ(hash(one).size(), 32u);
  EXPECT_EQ(hash(one + "/program.bc"), hash(one + "/program.bc and /k/64-1-1/k.so"));
  EXPECT_NE(hash(one), hash(head + "CM/POKLCDMCDCDBNGANBGLOMCBONBCJCEDJCMBBJO" + '\0'));
  EXPECT_EQ(hash(head), "");
  EXPECT_EQ(hash(""), "");
  EXPECT_EQ(hash("ELF" + one), "");
}

TEST(OpenClModule, PlacesOfTheWholeTextBecomePlacesOfTheUsersFile) {
  CompileRequest made;
  made.source_name = "mine.cl";
  EXPECT_EQ(cl::own_places("<kernel>:4:10: error: x\n<kernel>:12:1: note: y\n 1 error", made),
            "mine.cl:3:10: error: x\nmine.cl:11:1: note: y\n 1 error");
  made.defines = {{"A", "1"}, {"B", "2"}};
  EXPECT_EQ(cl::own_places("<kernel>:4:10: error", made), "mine.cl:1:10: error");
  // Within the defines, or no line at all.
  for (const char* kept : {"<kernel>:2:9: error", "<kernel>:", "<kernel>:x", "mine.cl:4:1: error", ""})
    EXPECT_EQ(cl::own_places(kept, made), kept);
}

TEST(OpenClErrors, AreNamedAndSorted) {
  EXPECT_EQ(cl::error_name(-54), "CL_INVALID_WORK_GROUP_SIZE (-54)");
  EXPECT_EQ(cl::error_name(-7777), "OpenCL error -7777");
  EXPECT_EQ(cl::error_of(-4, "x").code(), Code::exhausted);
  EXPECT_EQ(cl::error_of(-48, "x").code(), Code::internal);
  EXPECT_EQ(cl::error_of(-3, "x").code(), Code::unavailable);
  // Every code of OpenCL 1.0 to 3.0.
  for (int code = -1; code >= -72; --code) {
    if (code < -19 && code > -30) continue;
    EXPECT_THAT(cl::error_name(code), ::testing::StartsWith("CL_")) << code;
  }
}

}  // namespace
}  // namespace furlong::device
