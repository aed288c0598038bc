// The made-up driver keeps a real one's rules, and the CUDA back end lives without each symbol that it calls
// optional.
#include <gtest/gtest.h>

#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include <thread>

#include "furlong/device/cuda/internal/device.h"
#include "furlong/device/cuda/internal/facts.h"
#include "tests/fake_cuda/fakes.h"

namespace furlong::device::cuda {
namespace {

using fake::Fakes;
using fake::library;

const Fakes fakes;

constexpr const char* kText = R"(
extern "C" __global__ void add(const int* in, int* out, int by) { out[threadIdx.x] = in[threadIdx.x] + by; }
extern "C" __global__ void wild(int* out) { *(volatile int*)0x10 = 1; out[0] = 1; }
template <int N> __global__ void times(int* out) { out[threadIdx.x] *= N; }
)";

CompileRequest request() {
  CompileRequest request;
  request.language = Language::cuda;
  request.name = "test";
  request.source = kText;
  request.source_name = "test.cu";
  request.entries = {"add", "wild", "times<3>"};
  return request;
}

/// The driver's functions with one context, as the back end would use them.
class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    Fakes::script("");
    auto bound = bind_driver(library("cuda"));
    ASSERT_TRUE(bound) << bound.error().text();
    api = *bound;
    ASSERT_EQ(api.started, kSuccess);
    ASSERT_EQ(api.create_context(&context, kContextBlockingSync, 0), kSuccess);
  }
  void TearDown() override {
    if (context == nullptr) return;
    EXPECT_EQ(api.destroy_context(context), kSuccess);
  }
  void load() {
    auto nvrtc = Nvrtc::open();
    ASSERT_TRUE(nvrtc) << nvrtc.error().text();
    auto made = nvrtc->compile(request(), "sm_90");
    ASSERT_TRUE(made) << made.error().text();
    cubin = *std::move(made);
    ASSERT_EQ(api.load_module(&module, cubin.image.data()), kSuccess);
    ASSERT_EQ(api.find_function(&add, module, cubin.lowered[0].c_str()), kSuccess);
    ASSERT_EQ(api.find_function(&wild, module, cubin.lowered[1].c_str()), kSuccess);
    ASSERT_EQ(api.find_function(&times, module, cubin.lowered[2].c_str()), kSuccess);
    ASSERT_EQ(api.create_stream(&stream, kStreamNonBlocking), kSuccess);
    ASSERT_EQ(api.allocate(&out, 4096), kSuccess);
  }
  Status32 launch(Function function, std::vector<void*> arguments, unsigned block = 32, unsigned shared = 0) {
    return api.launch(function, 1, 1, 1, block, 1, 1, shared, stream, arguments.data(), nullptr);
  }

  Api api;
  Context context = nullptr;
  ModuleHandle module = nullptr;
  Function add = nullptr, wild = nullptr, times = nullptr;
  Stream stream = nullptr;
  Address out = 0;
  Cubin cubin;
};

TEST_F(FakeDriver, AContextIsCurrentOnOneThread) {
  std::size_t available = 0, all = 0;
  EXPECT_EQ(api.memory_info(&available, &all), kSuccess);
  EXPECT_EQ(all, std::size_t{2} << 30);
  std::thread([&] {
    EXPECT_EQ(api.memory_info(&available, &all), kInvalidContext);
    EXPECT_EQ(api.set_context(context), kSuccess);
    EXPECT_EQ(api.memory_info(&available, &all), kSuccess);
  }).join();
  std::thread([&] { EXPECT_EQ(api.destroy_context(context), kSuccess); }).join();
  EXPECT_EQ(api.memory_info(&available, &all), 709);  // CUDA_ERROR_CONTEXT_IS_DESTROYED
  EXPECT_EQ(api.set_context(context), kInvalidContext);
  context = nullptr;
}

TEST_F(FakeDriver, KernelsRunInOrderAndTakeTheirArgumentsAtTheLaunch) {
  load();
  EXPECT_NE(cubin.lowered[2], "times<3>");  // C++ names are mangled
  EXPECT_EQ(cubin.lowered[0], "add");
  Address in = 0;
  ASSERT_EQ(api.allocate(&in, 4096), kSuccess);
  ASSERT_EQ(api.fill_bytes(in, 0, 4096, stream), kSuccess);
  int by = 5;
  ASSERT_EQ(launch(add, {&in, &out, &by}), kSuccess);
  by = 1000;  // too late
  ASSERT_EQ(launch(times, {&out}), kSuccess);
  std::vector<int> values(32);
  ASSERT_EQ(api.copy_to_host(values.data(), out, 128, stream), kSuccess);
  EXPECT_EQ(values, std::vector<int>(32, 15));
}

TEST_F(FakeDriver, AFaultShowsAtTheNextWaitAndStaysWhenTheContextIsGone) {
  load();
  EXPECT_EQ(launch(wild, {&out}), kSuccess);
  EXPECT_EQ(api.wait_stream(stream), kIllegalAddress);
  Address more = 0;
  EXPECT_EQ(api.allocate(&more, 64), kIllegalAddress);
  EXPECT_EQ(api.free(out), kIllegalAddress);
  EXPECT_EQ(launch(add, {&out, &out, &out}), kIllegalAddress);
  EXPECT_EQ(api.unload_module(module), kIllegalAddress);
  int major = 0;
  EXPECT_EQ(api.card_attribute(&major, kAttributeMajor, 0), kSuccess);  // needs no context
  Context second = nullptr;
  EXPECT_EQ(api.create_context(&second, 0, 0), kIllegalAddress);
  EXPECT_EQ(api.destroy_context(context), kSuccess);
  EXPECT_EQ(api.create_context(&context, 0, 0), kIllegalAddress);
  EXPECT_EQ(api.allocate(&more, 64), kIllegalAddress);
  std::thread([&] { EXPECT_EQ(api.allocate(&more, 64), kIllegalAddress); }).join();
  // As another process finds it.
  Fakes::script("");
  EXPECT_EQ(api.allocate(&more, 64), kInvalidContext);
  ASSERT_EQ(api.create_context(&context, 0, 0), kSuccess);
  EXPECT_EQ(api.allocate(&more, 64), kSuccess);
  load();
  EXPECT_EQ(launch(times, {&out}), kSuccess);
  EXPECT_EQ(api.wait_stream(stream), kSuccess);
}

TEST_F(FakeDriver, MemoryOfAnotherContextAndFreedMemoryAreIllegal) {
  load();
  const Address mine = out;
  Context second = nullptr;
  ASSERT_EQ(api.create_context(&second, 0, 0), kSuccess);
  Address other = 0, freed = 0;
  ASSERT_EQ(api.allocate(&other, 4096), kSuccess);
  load();
  EXPECT_EQ(launch(times, {const_cast<Address*>(&mine)}), kSuccess);
  EXPECT_EQ(api.wait_stream(stream), kIllegalAddress);
  EXPECT_EQ(api.destroy_context(second), kSuccess);
  EXPECT_EQ(api.set_context(context), kSuccess);
  EXPECT_EQ(api.allocate(&freed, 4096), kIllegalAddress);  // it has lost nothing itself
  Fakes::script("");
  load();
  ASSERT_EQ(api.allocate(&freed, 4096), kSuccess);
  ASSERT_EQ(api.free(freed), kSuccess);
  EXPECT_EQ(launch(times, {&freed}), kSuccess);
  EXPECT_EQ(api.wait_stream(stream), kIllegalAddress);
}

TEST_F(FakeDriver, LaunchesAreRefusedAsADriverRefusesThem) {
  Fakes::script("nvrtc", "registers.add = 128; shared.wild = 40000");
  load();
  int registers = 0;
  EXPECT_EQ(api.function_attribute(&registers, kFunctionRegisters, add), kSuccess);
  EXPECT_EQ(registers, 128);
  int by = 1;
  EXPECT_EQ(launch(add, {&out, &out, &by}, 0), kInvalidValue);
  EXPECT_EQ(launch(add, {&out, &out, &by}, 1025), kInvalidValue);
  EXPECT_EQ(launch(add, {&out, &out, &by}, 1024), kOutOfResources);
  EXPECT_EQ(launch(add, {&out, &out, &by}, 512), kSuccess);
  EXPECT_EQ(launch(add, {&out, &out, &by}, 32, 60000), kInvalidValue);
  EXPECT_EQ(api.set_function_attribute(add, kFunctionMaxDynamicShared, 60000), kSuccess);
  EXPECT_EQ(launch(add, {&out, &out, &by}, 32, 60000), kSuccess);
  EXPECT_EQ(api.set_function_attribute(wild, kFunctionMaxDynamicShared, 200000), kInvalidValue);
  EXPECT_EQ(api.wait_stream(stream), kSuccess);
}

TEST_F(FakeDriver, ACaptureHoldsItsLaunchesAndForbidsWaiting) {
  load();
  ASSERT_EQ(api.fill_bytes(out, 0, 4096, stream), kSuccess);
  int by = 1;
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  ASSERT_EQ(api.begin_capture(stream, kCaptureThreadLocal), kSuccess);
  EXPECT_EQ(launch(add, {&out, &out, &by}), kSuccess);
  EXPECT_EQ(api.end_capture(stream, &graph), kSuccess);
  ASSERT_EQ(api.instantiate(&exec, graph, 0), kSuccess);
  EXPECT_EQ(api.destroy_graph(graph), kSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(api.launch_graph(exec, stream), kSuccess);
  int first = 0;
  EXPECT_EQ(api.copy_to_host(&first, out, 4, stream), kSuccess);
  EXPECT_EQ(first, 3);  // the capture itself ran nothing
  EXPECT_EQ(api.destroy_graph_exec(exec), kSuccess);
  EXPECT_EQ(api.destroy_graph_exec(exec), kInvalidValue);
  ASSERT_EQ(api.begin_capture(stream, kCaptureThreadLocal), kSuccess);
  Address more = 0;
  EXPECT_EQ(api.allocate(&more, 64), 900);  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  EXPECT_EQ(launch(add, {&out, &out, &by}), 901);
  EXPECT_EQ(api.end_capture(stream, &graph), 901);
  EXPECT_EQ(api.wait_stream(stream), kSuccess);
}

TEST_F(FakeDriver, APinnedSourceIsReadWhenTheCopyRuns) {
  load();
  void* pinned = nullptr;
  ASSERT_EQ(api.allocate_pinned(&pinned, 4096, 0), kSuccess);
  std::memset(pinned, 1, 4096);
  std::vector<unsigned char> plain(4096, 2);
  Event event = nullptr;
  ASSERT_EQ(api.create_event(&event, 0), kSuccess);
  ASSERT_EQ(api.copy_to_card(out, pinned, 4096, stream), kSuccess);
  ASSERT_EQ(api.copy_to_card(out + 2048, plain.data(), 1024, stream), kSuccess);
  std::fill(plain.begin(), plain.end(), 3);  // it was staged
  ASSERT_EQ(api.record_event(event, stream), kSuccess);
  ASSERT_EQ(api.wait_event(event), kSuccess);
  std::vector<unsigned char> back(4096);
  ASSERT_EQ(api.copy_to_host(back.data(), out, 4096, stream), kSuccess);
  EXPECT_EQ(back[0], 1);
  EXPECT_EQ(back[2048], 2);
  EXPECT_EQ(api.free_pinned(pinned), kSuccess);
  EXPECT_EQ(api.free_pinned(pinned), kInvalidValue);
}

TEST_F(FakeDriver, ADamagedOrForeignModuleIsRefused) {
  load();
  ModuleHandle other = nullptr;
  Bytes damaged = cubin.image;
  damaged[damaged.size() - 3] ^= 1;
  EXPECT_EQ(api.load_module(&other, damaged.data()), kInvalidImage);
  auto nvrtc = Nvrtc::open();
  ASSERT_TRUE(nvrtc);
  const auto foreign = nvrtc->compile(request(), "sm_80");
  ASSERT_TRUE(foreign) << foreign.error().text();
  EXPECT_EQ(api.load_module(&other, foreign->image.data()), kNoBinaryForCard);
}

TEST_F(FakeDriver, TheScriptAnswersAtTheCallItNames) {
  load();
  Fakes::script("cuda", "fail.cuMemAlloc = 2@2, 700@4; kernel.add = 719@3; time_us.times<3> = 250");
  Address more = 0;
  EXPECT_EQ(api.allocate(&more, 64), kSuccess);
  EXPECT_EQ(api.allocate(&more, 64), kOutOfMemory);
  EXPECT_EQ(api.allocate(&more, 64), kSuccess);
  Event start = nullptr, end = nullptr;
  ASSERT_EQ(api.create_event(&start, 0), kSuccess);
  ASSERT_EQ(api.create_event(&end, 0), kSuccess);
  ASSERT_EQ(api.record_event(start, stream), kSuccess);
  ASSERT_EQ(launch(times, {&out}), kSuccess);
  ASSERT_EQ(api.record_event(end, stream), kSuccess);
  ASSERT_EQ(api.wait_event(end), kSuccess);
  float ms = 0;
  ASSERT_EQ(api.elapsed_ms(&ms, start, end), kSuccess);
  EXPECT_GE(ms, 0.25f);
  int by = 1;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(launch(add, {&out, &out, &by}), kSuccess);
  EXPECT_EQ(api.wait_stream(stream), kSuccess);
  EXPECT_EQ(launch(add, {&out, &out, &by}), kSuccess);
  EXPECT_EQ(api.wait_stream(stream), kLaunchFailed);
}

struct StartFault {
  const char* script;
  Status32 code;
  const char *name, *mend;
};

class StartingFails : public ::testing::TestWithParam<StartFault> {};

TEST_P(StartingFails, IsNamedWithTheMend) {
  const StartFault& fault = GetParam();
  Fakes::script("cuda", fault.script);
  const auto bound = bind_driver(library("cuda"));
  ASSERT_TRUE(bound) << bound.error().text();
  EXPECT_EQ(bound->started, fault.code);
  EXPECT_EQ(bound->name_of(fault.code), fault.name);
  EXPECT_NE(start_advice(fault.code).find(fault.mend), std::string_view::npos) << start_advice(fault.code);
  EXPECT_EQ(bound->version, 13000);  // told all the same
}

INSTANTIATE_TEST_SUITE_P(
    device, StartingFails,
    ::testing::Values(
        StartFault{"cards = 0", kNoDevice, "CUDA_ERROR_NO_DEVICE (100)", "CUDA_VISIBLE_DEVICES"},
        StartFault{"init = 803", kDriverMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "reboot"},
        StartFault{"init = 802", kSystemNotReady, "CUDA_ERROR_SYSTEM_NOT_READY (802)",
                   "nvidia-fabricmanager"},
        StartFault{"init = 804", kCompatNotSupported, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)",
                   "installed driver"},
        StartFault{"init = 999", kUnknown, "CUDA_ERROR_UNKNOWN (999)", "nvidia-smi"}),
    [](const auto& one) { return "code" + std::to_string(one.param.code); });

TEST(OldDriver, TellsItsVersion) {
  Fakes::script("cuda", "driver = 11020");
  const auto bound = bind_driver(library("cuda"));
  ASSERT_TRUE(bound) << bound.error().text();
  EXPECT_EQ(bound->version, 11020);
}

// The symbols that the back end can do without, one library without each.
Result<std::unique_ptr<Device>> open_without(const std::string& symbol, Api& api) {
  FURLONG_TRY(api, bind_driver(library("cuda_without_" + symbol)));
  FURLONG_TRY(Nvrtc nvrtc, Nvrtc::open());
  return CudaDevice::open(api, 0, card_facts(api, 0, 0), std::move(nvrtc), std::nullopt);
}

class WithoutASymbol : public ::testing::TestWithParam<const char*> {};

TEST_P(WithoutASymbol, OnlyItsFeatureIsMissing) {
  const std::string symbol = GetParam();
  static std::map<std::string, Api> apis;  // devices refer to them
  const auto opened = open_without(symbol, apis[symbol]);
  ASSERT_TRUE(opened) << opened.error().text();
  Device& device = **opened;
  const auto module = device.compile(request());
  ASSERT_TRUE(module) << module.error().text();
  auto in = device.allocate(4096), out = device.allocate(4096);
  ASSERT_TRUE(in && out);
  ASSERT_TRUE((*in)->fill(0, 0, 4096));
  Launch launch;
  launch.module = module->get();
  launch.entry = "add";
  launch.block = {32, 1, 1};
  launch.arguments = {BufferArgument{in->get()}, BufferArgument{out->get()}, Bytes{9, 0, 0, 0}};
  const std::vector<Launch> pipeline{launch};
  const auto times = device.time({pipeline, 3, 4, nullptr});
  ASSERT_TRUE(times) << times.error().text();
  EXPECT_EQ(times->size(), 3u);
  Bytes back(4);
  ASSERT_TRUE((*out)->read(0, back));
  EXPECT_EQ(back[0], 9);
  EXPECT_EQ(device.occupancy(launch).has_value(), symbol != "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  EXPECT_EQ(device.facts().uuid.empty(), symbol == "cuDeviceGetUuid");
  launch.arguments.pop_back();
  // An argument too few is only told where the driver tells the parameters. (It is not run otherwise: the
  // driver would read behind the list.)
  if (symbol != "cuFuncGetParamInfo") {
    const Status refused = device.launch(launch);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::invalid);
  }
  launch.entry = "wild";
  launch.arguments = {BufferArgument{out->get()}};
  ASSERT_TRUE(device.launch(launch));
  const Status lost = device.finish();
  ASSERT_FALSE(lost);
  const std::string named =
      symbol == "cuGetErrorName" ? "CUDA error 700" : "CUDA_ERROR_ILLEGAL_ADDRESS (700)";
  EXPECT_NE(lost.error().text().find(named), std::string::npos) << lost.error().text();
}

INSTANTIATE_TEST_SUITE_P(device, WithoutASymbol,
                         ::testing::Values("cuGetErrorName", "cuGetErrorString", "cuDeviceGetUuid",
                                           "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                                           "cuFuncGetParamInfo", "cuStreamBeginCapture", "cuStreamEndCapture",
                                           "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphDestroy",
                                           "cuGraphExecDestroy"),
                         [](const auto& one) { return std::string(one.param); });

TEST(WithoutARequiredSymbol, TheDriverIsNamedAsTooOld) {
  const auto bound = bind_driver(library("cuda_without_cuMemGetInfo"));
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code(), Code::incompatible);
  EXPECT_NE(bound.error().text().find("cuMemGetInfo_v2"), std::string::npos) << bound.error().text();
  EXPECT_NE(bound.error().text().find("update"), std::string::npos) << bound.error().text();
}

}  // namespace
}  // namespace furlong::device::cuda
#else
TEST(FakeDriver, IsOfTheCudaBackEnd) { EXPECT_TRUE(true) << "this build has no CUDA back end"; }
#endif
