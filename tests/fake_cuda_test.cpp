// The CUDA back end over the made-up driver: the conformance suite, and each way in which a card can fail.
#include <gtest/gtest.h>

#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include "furlong/device/conformance/gtest.h"
#include "furlong/device/cuda/cuda.h"
#include "tests/fake_cuda/fakes.h"

namespace furlong::device {
namespace {

using fake::Fakes;

const Fakes fakes;

std::unique_ptr<Driver> driver_under(const std::string& script) {
  Fakes::script(script);
  return make_cuda_driver();
}

}  // namespace

FURLONG_CONFORMANCE(fake_cuda, driver_under("attribute.38 = 4194304"));

namespace {

bool has(const std::string& text, std::string_view needle) { return text.find(needle) != std::string::npos; }

struct Opened {
  std::unique_ptr<Driver> driver;
  std::unique_ptr<Device> device;
  std::shared_ptr<Module> module;
  std::unique_ptr<Buffer> a, b;

  Launch launch(std::string entry, std::vector<Argument> arguments, std::uint64_t block = 32) const {
    Launch one;
    one.module = module.get();
    one.entry = std::move(entry);
    one.block = {block, 1, 1};
    one.arguments = std::move(arguments);
    return one;
  }
  Launch count() const { return launch("count", {BufferArgument{a.get()}}); }
};

Result<Opened> open_under(const std::string& script) {
  Opened opened;
  opened.driver = driver_under(script);
  FURLONG_TRY(opened.device, opened.driver->open(0));
  FURLONG_TRY(const CompileRequest request, conformance_request({Language::cuda}));
  FURLONG_TRY(opened.module, opened.device->compile(request));
  FURLONG_TRY(opened.a, opened.device->allocate(4096));
  FURLONG_TRY(opened.b, opened.device->allocate(4096));
  FURLONG_CHECK(opened.a->fill(0, 0, 4096));
  return opened;
}

struct OpenFault {
  const char *name, *script;
  Code code;
  const char *says, *mend;
};

class OpeningFails : public ::testing::TestWithParam<OpenFault> {};

TEST_P(OpeningFails, IsNamedWithTheMend) {
  const OpenFault& fault = GetParam();
  const auto driver = driver_under(fault.script);
  auto opened = driver->open(0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), fault.code) << opened.error().text();
  EXPECT_TRUE(has(opened.error().text(), fault.says)) << opened.error().text();
  EXPECT_TRUE(has(opened.error().text(), fault.mend)) << opened.error().text();
  // And nothing of it stays.
  Fakes::script("");
  EXPECT_TRUE(make_cuda_driver()->open(0));
}

INSTANTIATE_TEST_SUITE_P(
    device, OpeningFails,
    ::testing::Values(OpenFault{"in_use", "fail.cuCtxCreate = 46", Code::unavailable,
                                "CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "nvidia-smi -c DEFAULT"},
                      OpenFault{"prohibited", "compute_mode = 2", Code::unavailable,
                                "CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "nvidia-smi -c DEFAULT"},
                      OpenFault{"full", "others_use = 2GiB", Code::exhausted, "CUDA_ERROR_OUT_OF_MEMORY (2)",
                                "nvidia-smi"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(FakeCuda, TwoCardsAreTwoDevices) {
  const auto driver = driver_under("cards = 2; name = Test Card; 1.name = Other Card; 1.memory = 1GiB");
  const auto listed = driver->list();
  ASSERT_TRUE(listed) << listed.error().text();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].label, "Test_Card");
  EXPECT_EQ((*listed)[1].label, "Other_Card");
  EXPECT_EQ((*listed)[1].address(), "cuda:1");
  EXPECT_NE((*listed)[0].silicon.hash(), (*listed)[1].silicon.hash());
  EXPECT_NE((*listed)[0].uuid, (*listed)[1].uuid);
  auto first = driver->open(0), second = driver->open(1);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE((*second)->allocate(std::size_t{512} << 20));
  EXPECT_FALSE((*second)->allocate(std::size_t{1536} << 20));
  EXPECT_TRUE((*first)->allocate(std::size_t{1536} << 20));
}

TEST(FakeCuda, OutOfMemorySaysAskedAndAvailable) {
  const auto opened = open_under("memory = 1GiB; others_use = 256MiB; context_bytes = 128MiB");
  ASSERT_TRUE(opened) << opened.error().text();
  const std::size_t asked = std::size_t{700} << 20;
  const auto refused = opened->device->allocate(asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::exhausted);
  const std::string text = refused.error().text();
  EXPECT_TRUE(has(text, std::to_string(asked))) << text;
  // 1 GiB less 256 and 128 MiB and the two buffers
  EXPECT_TRUE(has(text, std::to_string((std::size_t{640} << 20) - 8192))) << text;
  EXPECT_TRUE(has(text, "nvidia-smi")) << text;
  EXPECT_TRUE(opened->device->allocate(std::size_t{600} << 20));
}

TEST(FakeCuda, WhatThePoolKeepsIsGivenWhenMemoryRunsOut) {
  const auto opened = open_under("memory = 1GiB; context_bytes = 1MiB");
  ASSERT_TRUE(opened) << opened.error().text();
  {
    ASSERT_TRUE(opened->device->allocate(std::size_t{600} << 20));
  }
  EXPECT_TRUE(opened->device->allocate(std::size_t{700} << 20));
}

TEST(FakeCuda, LaunchLimitsAreRefusedWithTheNumbers) {
  const auto opened = open_under("registers.count = 96; shared.shift = 8192; fail.cuLaunchKernel = 1");
  ASSERT_TRUE(opened) << opened.error().text();
  // The driver would refuse every launch as a wrong value: none of these reaches it.
  const auto refused = [&](const Launch& launch, std::initializer_list<const char*> numbers) {
    const Status status = opened->device->launch(launch);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::invalid);
    for (const char* number : numbers)
      EXPECT_TRUE(has(status.error().text(), number)) << status.error().text();
    EXPECT_FALSE(has(status.error().text(), "CUDA_ERROR")) << status.error().text();
  };
  Launch launch = opened->count();
  launch.block = {2048, 1, 1};
  refused(launch, {"2048", "1024"});
  launch.block = {1024, 1, 1};
  refused(launch, {"1024", "96", "98304", "65536"});
  launch.block = {1, 1, 65};
  refused(launch, {"1x1x65", "64"});
  launch = opened->count();
  launch.grid = {1, 70000, 1};
  refused(launch, {"1x70000x1", "65535"});
  launch =
      opened->launch("shift", {BufferArgument{opened->a.get()}, BufferArgument{opened->b.get()}, Bytes(4)});
  launch.shared_bytes = 230000;
  refused(launch, {"230000", "8192", "232448"});
}

TEST(FakeCuda, MoreThanTheUsualSharedMemoryIsAskedFor) {
  const auto opened = open_under("");
  ASSERT_TRUE(opened) << opened.error().text();
  Launch launch = opened->count();
  launch.shared_bytes = 200000;
  EXPECT_TRUE(opened->device->launch(launch));
  EXPECT_TRUE(opened->device->finish());
}

TEST(FakeCuda, AFaultLosesTheDeviceForGood) {
  for (const char* code : {"700", "716", "719", "715", "214"}) {
    Result<Opened> opened = open_under("kernel.count = " + std::string(code) + "@3");
    ASSERT_TRUE(opened) << opened.error().text();
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(opened->device->launch(opened->count()));
      ASSERT_TRUE(opened->device->finish());
    }
    ASSERT_TRUE(opened->device->launch(opened->count()));
    const Status lost = opened->device->finish();
    ASSERT_FALSE(lost);
    EXPECT_TRUE(has(lost.error().text(), "(" + std::string(code) + ")")) << lost.error().text();
    const Status after = opened->device->launch(opened->count());
    ASSERT_FALSE(after);
    // A failing card is no kernel's doing.
    EXPECT_EQ(after.error().code(), std::string_view(code) == "214" ? Code::denied : Code::unavailable);
    EXPECT_TRUE(has(after.error().text(), "is lost")) << after.error().text();
    EXPECT_FALSE(opened->device->allocate(64));
    EXPECT_FALSE(opened->a->fill(0, 0, 16));
    // In this process no other opens, while the lost one still stands and when it is gone.
    const auto beside = opened->driver->open(0);
    ASSERT_FALSE(beside);
    EXPECT_TRUE(has(beside.error().text(), "(" + std::string(code) + ")")) << beside.error().text();
    opened = fail(Code::unavailable, "closed");
    const auto driver = make_cuda_driver();
    EXPECT_TRUE(driver->list());
    const auto again = driver->open(0);
    ASSERT_FALSE(again);
    EXPECT_TRUE(has(again.error().text(), "(" + std::string(code) + ")")) << again.error().text();
    // As another process finds it.
    const auto anew = open_under("");
    ASSERT_TRUE(anew) << anew.error().text();
    EXPECT_TRUE(anew->device->launch(anew->count()));
    EXPECT_TRUE(anew->device->finish());
  }
}

TEST(FakeCuda, AContextLostWhileWaitingOrCopyingIsLostToo) {
  for (const char* call :
       {"cuStreamSynchronize", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async"}) {
    const auto opened = open_under("");
    ASSERT_TRUE(opened) << opened.error().text();
    Fakes::script("fail." + std::string(call) + " = 719");
    Bytes bytes(64);
    Status status = opened->a->write(0, bytes);
    if (status) status = opened->a->read(0, bytes);
    if (status) status = opened->a->fill(1, 0, 64);
    ASSERT_FALSE(status) << call;
    EXPECT_TRUE(has(status.error().text(), "CUDA_ERROR_LAUNCH_FAILED (719)")) << status.error().text();
    const auto after = opened->device->allocate(64);
    ASSERT_FALSE(after);
    EXPECT_TRUE(has(after.error().text(), "is lost")) << after.error().text();
    EXPECT_FALSE(make_cuda_driver()->open(0));
  }
}

TEST(FakeCuda, AFaultInATimedBatchIsTheWindows) {
  const auto opened = open_under("kernel.count = 700@50");
  ASSERT_TRUE(opened) << opened.error().text();
  const Launch launch = opened->count();
  const auto times = opened->device->time({{&launch, 1}, 10, 10, nullptr});
  ASSERT_FALSE(times);
  EXPECT_TRUE(has(times.error().text(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)")) << times.error().text();
}

TEST(FakeCuda, TimesAreTheEvents) {
  const auto opened = open_under("time_us.count = 500");
  ASSERT_TRUE(opened) << opened.error().text();
  const Launch launch = opened->count();
  const auto times = opened->device->time({{&launch, 1}, 5, 8, nullptr});
  ASSERT_TRUE(times) << times.error().text();
  ASSERT_EQ(times->size(), 5u);
  for (const double ms : *times) {
    EXPECT_GE(ms, 0.4999);
    EXPECT_LT(ms, 5);  // the rest is what a busy host adds between two launches
  }
}

TEST(FakeCuda, ARefusedModuleIsNamed) {
  for (const char* code : {"200", "209", "218", "222"}) {
    const auto driver = driver_under("fail.cuModuleLoadData = " + std::string(code));
    auto device = driver->open(0);
    ASSERT_TRUE(device) << device.error().text();
    const auto request = conformance_request({Language::cuda});
    const auto module = (*device)->compile(*request);
    ASSERT_FALSE(module);
    EXPECT_TRUE(has(module.error().text(), "(" + std::string(code) + ")")) << module.error().text();
    EXPECT_TRUE(has(module.error().text(), "conformance")) << module.error().text();
    EXPECT_TRUE((*device)->allocate(64));  // the context is as it was
  }
}

// A driver older than the NVRTC: tests/e2e, since its version is read once a process.
TEST(FakeCuda, AnNvrtcOlderThanTheCardKeepsItClosedAndSaysWhichToInstall) {
  const auto driver = driver_under("nvrtc_archs = 70,75,80");
  EXPECT_TRUE(driver->list());
  const auto device = driver->open(0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code(), Code::unavailable);
  const std::string text = device.error().text();
  EXPECT_TRUE(has(text, "does not know this card's sm_90, only sm_70 to sm_80")) << text;
  EXPECT_TRUE(has(text, "unset FURLONG_NVRTC, or install NVRTC 13.0 (NVIDIA's package cuda-nvrtc-13-0)"))
      << text;
}

TEST(FakeCuda, TelemetryIsNvmls) {
  const auto opened =
      open_under("nvml.clock = 1200; nvml.power_mw = 612500; nvml.temperature = 71; nvml.reasons = 0*1, 4");
  ASSERT_TRUE(opened) << opened.error().text();
  const Telemetry first = opened->device->telemetry();
  EXPECT_EQ(first.clock_mhz, 1200.0);
  EXPECT_EQ(first.power_w, 612.5);
  EXPECT_EQ(first.temperature_c, 71.0);
  EXPECT_EQ(first.throttle, 0u);
  EXPECT_TRUE(first.energy_j.has_value());
  const Telemetry second = opened->device->telemetry();
  EXPECT_EQ(second.throttle, 4u);
  EXPECT_TRUE(has(second.throttle_text, "power")) << second.throttle_text;
}

}  // namespace
}  // namespace furlong::device
#else
TEST(FakeCuda, IsOfTheCudaBackEnd) { EXPECT_TRUE(true) << "this build has no CUDA back end"; }
#endif
