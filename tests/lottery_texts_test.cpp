// The lottery's texts as every back end runs them: each variant of each catalogue hashes as the pack's
// vectors and the reference say. CUDA text runs through the host shim, so that this needs no card.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "furlong/base/os/file.h"
#include "furlong/device/host/host.h"
#include "furlong/program/instance.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/race/internal/entrant.h"
#include "tests/cache_folder.h"
#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include "furlong/device/cuda/nvrtc.h"
#endif
#ifndef FURLONG_WITHOUT_DEVICE_OPENCL
#include "furlong/device/opencl/opencl.h"
#endif

namespace furlong {
namespace {

using program::Instance;
using program::RunInputs;

const auto* const cache_folder_environment =
    ::testing::AddGlobalTestEnvironment(new CacheFolder("furlong-lottery-texts"));

std::shared_ptr<const program::Program> lottery(std::int64_t loads, std::int64_t wide) {
  program::lottery::Parameters parameters{.day = loads + wide, .loads = loads, .wide = wide};
  parameters.epoch_seed.fill(static_cast<std::uint8_t>(loads));
  const auto pack = program::lottery::make_pack(parameters);
  EXPECT_TRUE(pack) << pack.error().text();
  auto made = program::lottery::program_of_pack(*pack, "pack");
  EXPECT_TRUE(made) << made.error().text();
  return *std::move(made);
}

/// One device with the dataset of one program in its memory.
class Runner {
 public:
  Runner(device::Device& device, Instance instance) : device_(device), instance_(std::move(instance)) {}

  Status prepare() {
    const auto& recipe = *instance_.program().recipe;
    Bytes dataset(recipe.dataset_bytes());
    FURLONG_CHECK(recipe.build_dataset(dataset, 2, {}));
    FURLONG_TRY(dataset_, device_.allocate(dataset.size()));
    return dataset_->write(0, dataset);
  }

  const Instance& instance() const { return instance_; }

  /// All vectors and one set of fresh inputs; the error names the variant and the first wrong element.
  Status check(const lattice::Point& point) {
    FURLONG_TRY(const program::VariantPlan plan, instance_.plan(point));
    FURLONG_TRY(const auto module, device_.compile(race::compile_request(instance_, plan, 0)));
    const std::vector<lattice::Point> points = {point};
    FURLONG_TRY(RunInputs fresh, instance_.check_inputs(5, points));
    FURLONG_CHECK_DOING(run(*module, point, fresh), "{} on {}", plan.name, fresh.name);
    for (std::size_t i = 0; i < instance_.vector_count(); ++i) {
      FURLONG_TRY(const RunInputs inputs, instance_.vector_inputs(i, points));
      FURLONG_CHECK_DOING(run(*module, point, inputs), "{} on {}", plan.name, inputs.name);
    }
    return {};
  }

 private:
  Status run(device::Module& module, const lattice::Point& point, const RunInputs& inputs) {
    const auto& arguments = instance_.program().arguments;
    std::vector<std::unique_ptr<device::Buffer>> buffers(arguments.size());
    FURLONG_TRY(const auto launches, instance_.launches(point, inputs));
    device::Launch launch{.module = &module,
                          .entry = launches[0].entry,
                          .grid = launches[0].grid,
                          .block = launches[0].block,
                          .shared_bytes = launches[0].shared_bytes,
                          .arguments = {}};
    for (const std::size_t i : launches[0].arguments) {
      FURLONG_CHECK(add_argument(i, point, inputs, buffers, launch));
    }
    FURLONG_CHECK(device_.launch(launch));
    FURLONG_CHECK(device_.finish());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (inputs.expected[i].empty()) continue;
      Bytes got(inputs.buffer_bytes[i]);
      FURLONG_CHECK(buffers[i]->read(0, got));
      FURLONG_CHECK(
          program::compare_output(instance_.program().check, arguments[i], got, inputs.expected[i]));
    }
    return {};
  }

  Status add_argument(std::size_t i, const lattice::Point& point, const RunInputs& inputs,
                      std::vector<std::unique_ptr<device::Buffer>>& buffers, device::Launch& launch) {
    const auto& argument = instance_.program().arguments[i];
    if (argument.kind == program::ArgumentKind::scalar) {
      FURLONG_TRY(Bytes bytes, instance_.scalar_bytes(i, point, inputs));
      launch.arguments.emplace_back(std::move(bytes));
      return {};
    }
    if (argument.kind == program::ArgumentKind::dataset) {
      launch.arguments.emplace_back(device::BufferArgument{dataset_.get(), 0});
      return {};
    }
    FURLONG_TRY(buffers[i], device_.allocate(inputs.buffer_bytes[i]));
    FURLONG_CHECK(inputs.bytes[i].empty() ? buffers[i]->fill(0xa5, 0, inputs.buffer_bytes[i])
                                          : buffers[i]->write(0, inputs.bytes[i]));
    launch.arguments.emplace_back(device::BufferArgument{buffers[i].get(), 0});
    return {};
  }

  device::Device& device_;
  Instance instance_;
  std::unique_ptr<device::Buffer> dataset_;
};

/// Every variant named, on the device; a variant that the device's limits exclude fails too.
void check_variants(device::Device& device, std::string_view language, std::int64_t loads, std::int64_t wide,
                    std::string_view variants) {
  auto instance = Instance::make(lottery(loads, wide), language, {}, {});
  ASSERT_TRUE(instance) << instance.error().text();
  Runner runner(device, *std::move(instance));
  const Status ready = runner.prepare();
  ASSERT_TRUE(ready) << ready.error().text();
  const auto points = runner.instance().select(variants);
  ASSERT_TRUE(points) << points.error().text();
  if (variants == "catalogue") {
    ASSERT_EQ(points->size(), runner.instance().lattice().catalogue.size());
  }
  for (const lattice::Point& point : *points) {
    const Status status = runner.check(point);
    EXPECT_TRUE(status) << status.error().text();
  }
}

Result<std::unique_ptr<device::Device>> open_first(std::unique_ptr<device::Driver> driver) {
  static std::vector<std::unique_ptr<device::Driver>> keep;  // a device must not outlive its driver
  keep.push_back(std::move(driver));
  return keep.back()->open(0);
}

#define OPEN_OR_SKIP(device, driver)                                                                \
  auto device = open_first(driver);                                                                 \
  if (!device && device.error().code() == Code::unavailable) GTEST_SKIP() << device.error().text(); \
  ASSERT_TRUE(device) << device.error().text()

TEST(LotteryTextsOnHost, EveryCudaVariantThroughTheShim) {
  OPEN_OR_SKIP(device, device::make_host_driver());
  check_variants(**device, "cuda", 128, 8, "catalogue");
}

TEST(LotteryTextsOnHost, CudaTextOfOtherClasses) {
  OPEN_OR_SKIP(device, device::make_host_driver());
  for (const auto& [loads, wide] : {std::pair{128, 0}, {64, 32}, {32, 32}})
    check_variants(**device, "cuda", loads, wide, "ldcg-w4");
}

TEST(LotteryTextsOnHost, EveryHostVariant) {
  OPEN_OR_SKIP(device, device::make_host_driver());
  check_variants(**device, "host", 128, 0, "catalogue");
  check_variants(**device, "host", 64, 32, "u8-v4");
}

#ifndef FURLONG_WITHOUT_DEVICE_OPENCL
TEST(LotteryTextsOnOpencl, EveryOpenclVariant) {
  OPEN_OR_SKIP(device, device::make_opencl_driver());
  check_variants(**device, "opencl", 128, 8, "catalogue");
}

TEST(LotteryTextsOnOpencl, OtherClasses) {
  OPEN_OR_SKIP(device, device::make_opencl_driver());
  for (const auto& [loads, wide] : {std::pair{128, 0}, {64, 32}})
    check_variants(**device, "opencl", loads, wide, "base");
}
#endif

#ifndef FURLONG_WITHOUT_DEVICE_CUDA
// A text that does not compile must never reach a fleet. NVRTC needs no card.
TEST(LotteryTextsWithNvrtc, EveryCudaVariantCompilesForEveryGeneration) {
  const auto nvrtc = device::Nvrtc::open();
  if (!nvrtc && nvrtc.error().code() == Code::unavailable) GTEST_SKIP() << nvrtc.error().text();
  ASSERT_TRUE(nvrtc) << nvrtc.error().text();
  const auto instance = Instance::make(lottery(128, 8), "cuda", {}, {});
  ASSERT_TRUE(instance) << instance.error().text();
  const auto points = instance->select("catalogue");
  ASSERT_TRUE(points) << points.error().text();
  const auto known = nvrtc->architectures();
  for (const char* arch : {"sm_80", "sm_90", "sm_120"}) {
    if (std::find(known.begin(), known.end(), arch) == known.end()) continue;  // an older NVRTC
    std::set<Digest> compiled;  // variants that differ in the launch alone are one text
    std::map<std::string, device::Cubin> made;
    for (const lattice::Point& point : *points) {
      const auto plan = instance->plan(point);
      ASSERT_TRUE(plan) << plan.error().text();
      if (!compiled.insert(plan->source_hash).second) continue;
      auto cubin = nvrtc->compile(race::compile_request(*instance, *plan, 0), arch);
      ASSERT_TRUE(cubin) << arch << ": " << plan->name << ": " << cubin.error().text();
      if (plan->name != "r32") {  // a cap may spill: that is its trade-off
        EXPECT_EQ(cubin->spill_bytes.value_or(0), 0u) << arch << ": " << plan->name;
      }
      made[plan->name] = *std::move(cubin);
    }
    EXPECT_EQ(made.size(), 11u);
    EXPECT_LE(made["r32"].registers.value_or(999), 32) << arch;
    for (const char* changed : {"u2", "u8", "ldcg", "ldcs"})  // the rewrite reached the machine code
      EXPECT_NE(made[changed].code_hash, made["base"].code_hash) << arch << ": " << changed;
  }
}
#endif

}  // namespace
}  // namespace furlong
