// The kernels behind a device's ceilings in every language: what they give is compared with the host's
// computation by measure_ceilings itself, so that a kernel that is wrong somewhere fails here. CUDA text runs
// through the host shim, so that this needs no card.
#include "furlong/device/ceilings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "furlong/base/os/file.h"
#include "furlong/device/host/host.h"
#include "furlong/device/internal/ceiling_kernels.h"
#include "tests/cache_folder.h"
#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include "furlong/device/cuda/nvrtc.h"
#endif
#ifndef FURLONG_WITHOUT_DEVICE_OPENCL
#include "furlong/device/opencl/opencl.h"
#endif

namespace furlong::device {
namespace {

const auto* const cache_folder_environment =
    ::testing::AddGlobalTestEnvironment(new CacheFolder("furlong-ceilings"));

/// Small enough for seconds on a slow machine, with more than one round of every loop.
CeilingOptions smoke() {
  CeilingOptions options;
  options.sizes = {256u << 10, 1u << 20};
  options.launch_ms = 0.2;
  options.windows = 1;
  options.repeats = 2;
  options.elements = 4096;
  options.max_rounds = 3;
  return options;
}

std::unique_ptr<Driver> driver;  // a device must not outlive its driver

#define OPEN_OR_SKIP(device, made)                                                                  \
  driver = made;                                                                                    \
  auto device = driver->open(0);                                                                    \
  if (!device && device.error().code() == Code::unavailable) GTEST_SKIP() << device.error().text(); \
  ASSERT_TRUE(device) << device.error().text()

void expect_all(const Ceilings& ceilings, std::size_t sizes) {
  for (const CeilingKind kind :
       {CeilingKind::stream_read, CeilingKind::stream_copy, CeilingKind::random4, CeilingKind::random16,
        CeilingKind::random128, CeilingKind::integer, CeilingKind::floating}) {
    const auto count = std::ranges::count(ceilings.rates, kind, &CeilingRate::kind);
    EXPECT_EQ(static_cast<std::size_t>(count), kind < CeilingKind::integer ? sizes : 1) << ceiling_name(kind);
  }
  for (const LeftOut& one : ceilings.left_out) ADD_FAILURE() << ceiling_name(one.kind) << ": " << one.why;
  for (const CeilingRate& rate : ceilings.rates) {
    EXPECT_GT(rate.rate, 1e3) << ceiling_name(rate.kind);
    EXPECT_LT(rate.rate, 1e15) << ceiling_name(rate.kind);
    EXPECT_FALSE(rate.how.empty());
  }
}

TEST(CeilingsOnHost, HostKernels) {
  OPEN_OR_SKIP(device, make_host_driver());
  const auto ceilings = measure_ceilings(**device, smoke());
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_EQ(ceilings->language, "host");
  expect_all(*ceilings, 2);
}

TEST(CeilingsOnHost, CudaKernelsThroughTheShim) {
  OPEN_OR_SKIP(device, make_host_driver());
  CeilingOptions options = smoke();
  options.sizes = {128u << 10};
  options.elements = 1024;
  options.language = Language::cuda;
  const auto ceilings = measure_ceilings(**device, options);
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_EQ(ceilings->language, "cuda");
  expect_all(*ceilings, 1);
}

#ifndef FURLONG_WITHOUT_DEVICE_OPENCL
TEST(CeilingsOnOpencl, OpenclKernels) {
  OPEN_OR_SKIP(device, make_opencl_driver());
  const auto ceilings = measure_ceilings(**device, smoke());
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_EQ(ceilings->language, "opencl");
  expect_all(*ceilings, 2);
}
#endif

#ifndef FURLONG_WITHOUT_DEVICE_CUDA
// A spill would be measured along with what is to be measured. NVRTC needs no card.
TEST(CeilingsWithNvrtc, EveryKernelCompilesWithoutSpills) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc && nvrtc.error().code() == Code::unavailable) GTEST_SKIP() << nvrtc.error().text();
  ASSERT_TRUE(nvrtc) << nvrtc.error().text();
  const auto known = nvrtc->architectures();
  for (const char* arch : {"sm_75", "sm_90", "sm_120"}) {
    if (std::ranges::find(known, arch) == known.end()) continue;  // another NVRTC
    Facts facts;
    facts.silicon.arch = arch;
    facts.max_threads_per_block = 1024;
    std::map<std::string, Cubin> made;  // ways that differ in the launch alone are one text
    for (std::size_t k = 0; k < ceiling_kinds; ++k) {
      const auto kind = static_cast<CeilingKind>(k);
      if (!internal::has_kernel(kind, Language::cuda, arch)) continue;
      for (const internal::Way& way : internal::ways_of(kind, Language::cuda, facts)) {
        CompileRequest request = internal::request_of(kind, Language::cuda, way);
        request.entries = {internal::entry_of(kind)};
        Cubin& cubin = made[request.name + request.entries[0]];
        if (cubin.image.empty()) {
          auto compiled = nvrtc->compile(request, arch);
          ASSERT_TRUE(compiled) << arch << ": " << compiled.error().text();
          cubin = *std::move(compiled);
        }
        EXPECT_EQ(cubin.spill_bytes.value_or(0), 0u) << arch << ": " << ceiling_name(kind);
        // All threads of the block must find registers: 65,536 of a multiprocessor.
        EXPECT_LE(cubin.registers.value_or(0) * way.block, 65536) << arch << ": " << ceiling_name(kind);
      }
    }
    EXPECT_EQ(made.size(), std::string_view(arch) == "sm_75" ? 17u : 20u);
  }
}
#endif

}  // namespace
}  // namespace furlong::device
