#include "furlong/device/sim/sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "furlong/base/os/memory.h"
#include "furlong/device/sim/internal/test_rig.h"

namespace furlong::device {
namespace {

using internal::quiet;
using internal::Rig;
using ::testing::HasSubstr;

TEST(SimDriver, ListsADevicePerEntryWithPlausibleFacts) {
  SimOptions named;
  named.facts.label = "Card_B";
  named.facts.silicon.arch = "sm_90";
  named.facts.languages = {Language::cuda};
  auto driver = make_sim_driver({SimOptions{}, named});
  const auto facts = driver->list().value();
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].address(), "sim:0");
  EXPECT_EQ(facts[1].address(), "sim:1");
  EXPECT_EQ(facts[1].label, "Card_B");
  EXPECT_TRUE(facts[0].virtual_time);
  EXPECT_EQ(facts[0].languages.size(), 4u);
  EXPECT_EQ(facts[1].languages, std::vector<Language>{Language::cuda});
  EXPECT_EQ(facts[0].warp, 32);
  EXPECT_GE(facts[0].max_threads_per_block, 256);
  EXPECT_NE(facts[0].silicon.hash(), facts[1].silicon.hash());
  EXPECT_NE(facts[0].uuid, facts[1].uuid);
  const auto absent = driver->open(2);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::unavailable);
  EXPECT_THAT(absent.error().text(), HasSubstr("sim:2"));
}

TEST(SimDriver, SenselessOptionsAreRefusedByName) {
  SimOptions options;
  options.timing.autocorrelation = 1;
  auto driver = make_sim_driver({SimOptions{}, options});
  const auto opened = driver->open(0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::invalid);
  EXPECT_THAT(opened.error().text(), HasSubstr("sim:1: timing.autocorrelation is 1"));
  EXPECT_FALSE(driver->list());
}

TEST(SimCompile, CodeHashFollowsTheTextAndNotTheName) {
  Rig rig(quiet());
  CompileRequest request;
  request.name = "a";
  request.source = "text";
  request.entries = {"k"};
  request.defines = {{"U", "2"}};
  const auto hash = [&](const CompileRequest& r) {
    return rig.device->compile(r).value()->facts().code_hash;
  };
  CompileRequest same = request;
  same.name = "b";
  EXPECT_EQ(hash(request), hash(same));
  CompileRequest other = request;
  other.defines = {{"U", "3"}};
  EXPECT_NE(hash(request), hash(other));
  other = request;
  other.options = {"-O1"};
  EXPECT_NE(hash(request), hash(other));
  other = request;  // the boundary between defines and options counts
  other.defines = {};
  other.options = {"U", "2"};
  EXPECT_NE(hash(request), hash(other));
  other = request;
  other.source = "text ";
  EXPECT_NE(hash(request), hash(other));
  EXPECT_EQ(hash(request).size(), 64u);
}

TEST(SimCompile, FactsTimeAndLanguages) {
  SimOptions options = quiet();
  options.registers = {{"u2", 48}, {"*", 40}};
  options.facts.languages = {Language::cuda};
  Rig rig(std::move(options));
  rig.launch_of("u2");
  rig.launch_of("u8");
  EXPECT_EQ(rig.modules["u2"]->facts().registers, 48);
  EXPECT_EQ(rig.modules["u8"]->facts().registers, 40);
  EXPECT_NEAR(rig.clock->now_ms(), 100, 1e-9);
  CompileRequest request;
  request.language = Language::opencl;
  const auto refused = rig.device->compile(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);
  request.language = Language::cuda;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(rig.device->compile(request, stop.get_token()).error().code(), Code::timeout);
}

TEST(SimCompile, FaultsAndACallersCompiler) {
  SimOptions options = quiet();
  options.faults = {{"bad", SimFault::compile_error}, {"worse", SimFault::compile_crash}};
  options.compiler = [](const CompileRequest& r) -> Status {
    if (r.source.find("kernel picky") != std::string::npos) return fail(Code::invalid, "line 1: too picky");
    return {};
  };
  Rig rig(std::move(options));
  CompileRequest request;
  request.source_name = "k.cu";
  const auto compile = [&](const std::string& name) {
    request.name = name;
    request.source = "kernel " + name;
    return rig.device->compile(request);
  };
  EXPECT_TRUE(compile("good"));
  EXPECT_EQ(compile("bad").error().code(), Code::invalid);
  EXPECT_THAT(compile("bad").error().text(), HasSubstr("k.cu:1:1: error: 'bad'"));
  EXPECT_EQ(compile("worse").error().code(), Code::internal);
  EXPECT_THAT(compile("picky").error().text(), HasSubstr("too picky"));
}

TEST(SimCompile, SeveralThreadsBesideOneThatLaunches) {
  Rig rig(quiet());
  rig.launch_of("base");
  std::vector<std::thread> threads;
  std::atomic<int> compiled = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        CompileRequest request;
        request.name = fmt::format("v{}-{}", t, i);
        if (rig.device->compile(request)) ++compiled;
      }
    });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(rig.run("base"));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiled, 200);
}

TEST(SimMemory, LimitsAreCountedAndFreed) {
  SimOptions options = quiet();
  options.memory_bytes = 1 << 20;
  auto driver = make_sim_driver({options});
  auto device = driver->open(0).value();
  EXPECT_EQ(device->memory().used_bytes, 0u);
  {
    auto half = device->allocate(600 << 10).value();
    EXPECT_EQ(device->memory().used_bytes, 600u << 10);
    const auto more = device->allocate(600 << 10);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code(), Code::exhausted);
    EXPECT_THAT(more.error().text(), HasSubstr("asked for 614400 bytes, 434176 of 1048576 are available"));
    device->set_memory_limit(700 << 10);
    EXPECT_FALSE(device->allocate(200 << 10));
    EXPECT_TRUE(device->allocate(100 << 10));
  }
  EXPECT_EQ(device->memory().used_bytes, 0u);
  EXPECT_EQ(device->memory().limit_bytes, 700u << 10);
  EXPECT_EQ(device->allocate(0).error().code(), Code::invalid);
}

TEST(SimMemory, ReadsWritesAndFillsWithinBounds) {
  Rig rig(quiet());
  auto buffer = rig.device->allocate(20000).value();
  Bytes expected(20000, 9);
  ASSERT_TRUE(buffer->fill(9, 0, 20000));
  ASSERT_TRUE(buffer->fill(0, 100, 19000));  // across whole pages and both of their ragged ends
  std::fill_n(expected.begin() + 100, 19000, std::uint8_t{0});
  ASSERT_TRUE(buffer->write(5000, Bytes{1, 2, 3}));
  expected[5000] = 1, expected[5001] = 2, expected[5002] = 3;
  Bytes found(20000);
  ASSERT_TRUE(buffer->read(0, found));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(buffer->write(19999, Bytes{1, 2}).error().code(), Code::invalid);
  EXPECT_EQ(buffer->fill(1, 20001, 0).error().code(), Code::invalid);
  EXPECT_EQ(buffer->read(~std::size_t{0}, found).error().code(), Code::invalid);
}

TEST(SimMemory, AnUnwrittenDatasetCostsNoMemory) {
  Rig rig(quiet());
  const std::uint64_t before = peak_resident_bytes();
  auto dataset = rig.device->allocate(std::size_t{4} << 30).value();
  ASSERT_TRUE(dataset->fill(0, 0, dataset->size()));
  Bytes end(16);
  ASSERT_TRUE(dataset->read(dataset->size() - 16, end));
  EXPECT_EQ(end, Bytes(16));
  EXPECT_LT(peak_resident_bytes() - before, 64u << 20);
}

TEST(SimMemory, TransfersTakeVirtualTime) {
  SimOptions options = quiet();
  options.transfer_gb_per_s = 1;
  Rig rig(std::move(options));
  auto buffer = rig.device->allocate(1 << 20).value();
  ASSERT_TRUE(buffer->write(0, Bytes(1000000)));
  EXPECT_NEAR(rig.clock->now_ms(), 1, 1e-9);
}

TEST(SimLaunch, RunsTheBehaviourWithOffsetsAndScalars) {
  Rig rig(quiet());
  ASSERT_TRUE(rig.in->fill(1, 0, 1024));
  ASSERT_TRUE(rig.out->fill(0xEE, 0, 1024));
  Launch launch = rig.launch_of("base");
  launch.arguments[0] = BufferArgument{rig.out.get(), 512};
  ASSERT_TRUE(rig.device->launch(launch));
  ASSERT_TRUE(rig.device->finish());
  const Bytes output = rig.output();
  EXPECT_EQ(output[511], 0xEE);
  EXPECT_EQ(output[512], 8);
  EXPECT_EQ(output[1023], 8);
}

TEST(SimLaunch, WrongShapesAreRefusedWithTheNumbers) {
  SimOptions options = quiet();
  options.facts.max_threads_per_block = 256;
  options.facts.max_shared_bytes = 1024;
  Rig rig(std::move(options));
  const Launch good = rig.launch_of("base");
  const auto refused = [&](auto change) {
    Launch bad = good;
    change(bad);
    const Status status = rig.device->launch(bad);
    if (status) return std::string("accepted");
    EXPECT_EQ(status.error().code(), Code::invalid);
    return status.error().text();
  };
  EXPECT_THAT(refused([](Launch& l) { l.block = {512, 1, 1}; }),
              HasSubstr("512 threads a block, the device allows 256"));
  EXPECT_THAT(refused([](Launch& l) { l.block = {1, 1, 65}; }), HasSubstr("65 threads on axis 2"));
  EXPECT_THAT(refused([](Launch& l) { l.grid = {1, 0, 1}; }), HasSubstr("empty"));
  EXPECT_THAT(refused([](Launch& l) { l.shared_bytes = 1025; }), HasSubstr("1025 bytes of shared memory"));
  EXPECT_THAT(refused([](Launch& l) { l.entry = "kk"; }), HasSubstr("no kernel 'kk'"));
  EXPECT_THAT(refused([](Launch& l) { l.arguments.pop_back(); }), HasSubstr("3 arguments, not 2"));
  EXPECT_THAT(refused([](Launch& l) { std::get<BufferArgument>(l.arguments[1]).offset = 128; }),
              HasSubstr("offset 128"));
  EXPECT_THAT(refused([](Launch& l) { std::get<BufferArgument>(l.arguments[1]).offset = 1024; }),
              HasSubstr("under 1024"));
  EXPECT_THAT(refused([](Launch& l) { std::get<BufferArgument>(l.arguments[0]).buffer = nullptr; }),
              HasSubstr("argument 0"));
  EXPECT_THAT(refused([](Launch& l) { l.module = nullptr; }), HasSubstr("no module"));
  EXPECT_TRUE(rig.run("base")) << "a refused launch leaves the device usable";
}

TEST(SimLaunch, ABuffersDeviceIsChecked) {
  Rig rig(quiet()), other(quiet());
  Launch launch = rig.launch_of("base");
  launch.arguments[0] = BufferArgument{other.out.get(), 0};
  EXPECT_EQ(rig.device->launch(launch).error().code(), Code::invalid);
}

}  // namespace
}  // namespace furlong::device
