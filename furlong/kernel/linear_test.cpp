// Products by shape: what is asked of the race, and what is refused before there is one. The simulated card
// computes nothing, so that every race ends with base's gate.
#include "furlong/kernel/linear.h"

#include <gmock/gmock.h>

#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "furlong/device/host/host.h"
#include "furlong/device/sim/sim.h"
#include "furlong/program/linear/shipped.h"

namespace furlong::kernel {
namespace {

using program::ElementType;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using Names = std::set<std::string>;

class LinearKernels : public ::testing::Test {
 protected:
  void open(const std::string& arch = "sm_90", std::uint64_t shared_bytes = 227 * 1024) {
    device::SimOptions sim;
    sim.facts.silicon.vendor = "NVIDIA";
    sim.facts.silicon.arch = arch;
    sim.facts.max_shared_bytes = shared_bytes;
    sim.facts.languages = {device::Language::cuda};
    sim.compiler = [this](const device::CompileRequest& module) -> Status {
      const std::lock_guard lock(mutex_);
      compiled_.insert(module.name);
      return {};
    };
    clock_ = std::make_shared<FakeClock>();
    driver_ = device::make_sim_driver({sim}, clock_);
    device_ = driver_->open(0).value();
    kernel_.folder = "/cache";
    kernel_.files = &files_;
    kernel_.context.clock = clock_.get();
  }
  /// The variants that the race compiled, before base failed its gate.
  Names compiled(const Result<RacedKernel>& made) {
    EXPECT_FALSE(made);
    if (!made) {
      EXPECT_EQ(made.error().code(), Code::mismatch) << made.error().text();
    }
    return std::exchange(compiled_, {});
  }
  Names gemv(const GemvShape& shape, const std::string& activations = "two_pass_int8") {
    return compiled(
        raced_gemv(*device_, shape, {.activations = activations, .rotate_mib = 0, .kernel = kernel_}));
  }
  Names gemm(const GemmShape& shape, std::vector<std::string> precisions, std::int64_t operand_max,
             ElementType type = ElementType::i64) {
    return compiled(
        raced_gemm(*device_, shape, type,
                   {.precisions = std::move(precisions), .operand_max = operand_max, .kernel = kernel_}));
  }
  /// What is said of a request that is refused.
  std::string refused(const Result<RacedKernel>& made, Code code = Code::invalid) {
    EXPECT_FALSE(made);
    if (made) return "";
    EXPECT_EQ(made.error().code(), code) << made.error().text();
    EXPECT_TRUE(compiled_.empty()) << "it was refused late: " << made.error().text();
    return made.error().text();
  }
  std::string refused_gemv(const GemvShape& shape, GemvOptions options = {}, Code code = Code::invalid) {
    options.kernel = kernel_;
    return refused(raced_gemv(*device_, shape, options), code);
  }
  std::string refused_gemm(const GemmShape& shape, GemmOptions options, ElementType type = ElementType::i64) {
    options.kernel = kernel_;
    return refused(raced_gemm(*device_, shape, type, options));
  }

  FakeFiles files_;
  Options kernel_;
  std::mutex mutex_;
  Names compiled_;
  std::shared_ptr<FakeClock> clock_;
  std::unique_ptr<device::Driver> driver_;
  std::unique_ptr<device::Device> device_;
};

TEST_F(LinearKernels, VectorsAreRacedByTheirActivations) {
  open();
  const Names two_pass = gemv({.n = 64, .k = 512});
  EXPECT_THAT(two_pass, Contains("base"));
  EXPECT_THAT(two_pass, Contains("imma"));
  EXPECT_THAT(two_pass, Each(Not(HasSubstr("x8"))));
  EXPECT_THAT(two_pass, Each(Not(HasSubstr("f64"))));
  const Names one = gemv({.n = 64, .k = 512, .batch = 8}, "int8");
  EXPECT_THAT(one, AllOf(Contains("imma"), Contains(HasSubstr("x8"))));
  Names exact = gemv({.n = 64, .k = 512}, "dequant");
  EXPECT_EQ(exact.erase("base"), 1u) << "what the others are compared with";
  EXPECT_FALSE(exact.empty());
  EXPECT_THAT(exact, Each(HasSubstr("f64")));
}

TEST_F(LinearKernels, AutoIsThePlainProductAlone) {
  open();
  EXPECT_EQ(gemm({64, 64, 64}, {}, 0), Names{"base"});
  EXPECT_EQ(gemm({64, 64, 64}, {"auto"}, 0, ElementType::f32), Names{"base"});
}

TEST_F(LinearKernels, PrecisionsAreRacedOnlyByName) {
  open();
  Names int8 = gemm({256, 256, 256}, {"int8_imma"}, 45);
  EXPECT_EQ(int8.erase("base"), 1u);
  EXPECT_THAT(int8, AllOf(Contains("imma"), Contains("imma-group"), Each(HasSubstr("imma"))));
  const Names both = gemm({256, 256, 256}, {"int8_dp4a", "bf16_hmma"}, 45);
  EXPECT_THAT(both, AllOf(Contains("dp4a"), Contains("bf16"), Each(Not(HasSubstr("imma")))));
  const Names real = gemm({64, 64, 64}, {"fp16_hmma"}, 0, ElementType::f32);
  EXPECT_THAT(real, AllOf(Contains("fp16"), Each(Not(HasSubstr("bf16")))));
}

TEST_F(LinearKernels, WhatDoesNotFitTheCardIsLeftOut) {
  open("sm_86", 48 * 1024);
  const Names names = gemm({256, 256, 256}, {"int8_imma"}, 45);
  EXPECT_THAT(names, AllOf(Contains("imma"), Each(Not(HasSubstr("group")))));
}

TEST_F(LinearKernels, SidesHaveLimits) {
  open();
  EXPECT_THAT(refused_gemv({.n = 0, .k = 64}), HasSubstr("n is 0; it must be 1 to 1073741824"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = -3}), HasSubstr("k is -3"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = (std::int64_t{1} << 30) + 1}), HasSubstr("k is 1073741825"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64, .batch = 9}), HasSubstr("batch is 9; it must be 1 to 8"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64, .batch = 0}), HasSubstr("batch is 0"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64}, {.rotate_mib = -1}), HasSubstr("rotate_mib is -1"));
  EXPECT_THAT(refused_gemm({0, 1, 1}, {}), HasSubstr("m is 0"));
  EXPECT_THAT(refused_gemm({1, 1, std::numeric_limits<std::int64_t>::max()}, {}),
              HasSubstr("k is 9223372036854775807"));
  // Over 2^31 elements is no mistake, but what no machine holds is told before anything is made.
  const std::string huge =
      refused_gemv({.n = std::int64_t{1} << 30, .k = std::int64_t{1} << 30}, {}, Code::exhausted);
  EXPECT_THAT(huge, HasSubstr("of memory"));
}

TEST_F(LinearKernels, NamesThatThereAreNot) {
  open();
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64}, {.chip = "h2000"}), HasSubstr("did you mean 'h200'"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64}, {.chip = "b200"}), HasSubstr("this device is an sm_90"));
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64}, {.activations = "int4"}), HasSubstr("no activations 'int4'"));
  EXPECT_THAT(refused_gemm({16, 16, 16}, {.precisions = {"int8_ima"}, .operand_max = 5}),
              HasSubstr("did you mean 'int8_imma'"));
  EXPECT_THAT(refused_gemm({16, 16, 16}, {.precisions = {"int8_imma"}}, ElementType::f32),
              HasSubstr("no precision 'int8_imma'"));
  EXPECT_THAT(refused_gemm({16, 16, 16}, {}, ElementType::i8), HasSubstr("there is no product of i8"));
  EXPECT_THAT(refused_gemm({16, 16, 16}, {.operand_max = 5}, ElementType::f32),
              HasSubstr("are of products of i64"));
}

TEST_F(LinearKernels, OperandsMustFitThePrecision) {
  open();
  const GemmShape shape{2, 2, 2};
  std::vector<std::int64_t> a = {1, -128, 3, 4}, b = {5, 6, 7, 127};
  const auto with = [&](std::vector<std::string> precisions, std::int64_t operand_max = 0) {
    return GemmOptions{
        .precisions = std::move(precisions), .operand_max = operand_max, .a = a, .b = b, .kernel = kernel_};
  };
  EXPECT_THAT(compiled(raced_gemm(*device_, shape, ElementType::i64, with({"int8_dp4a"}))), Contains("dp4a"));
  b[1] = 128;
  EXPECT_THAT(refused_gemm(shape, with({"int8_dp4a"})),
              AllOf(HasSubstr("b in int8_dp4a"), HasSubstr("operand 1 is 128")));
  b[1] = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(refused_gemm(shape, with({"bf16_hmma"})), HasSubstr("operand 1 is -9223372036854775808"));
  EXPECT_EQ(compiled(raced_gemm(*device_, shape, ElementType::i64, with({"int64"}))), Names{"base"});
  EXPECT_THAT(refused_gemm(shape, with({}, 100)), HasSubstr("over the operand_max of 100"));
  a.pop_back();
  EXPECT_THAT(refused_gemm(shape, with({})), HasSubstr("a has 3 operands, and is 2 x 2"));
  EXPECT_THAT(refused_gemm(shape, {.operand_max = -1}), HasSubstr("operand_max is -1"));
  EXPECT_THAT(refused_gemm(shape, {.precisions = {"int8_imma"}}),
              HasSubstr("say operand_max, or give a and b"));
  EXPECT_THAT(refused_gemm(shape, {.precisions = {"int8_imma"}, .operand_max = 129}),
              HasSubstr("holds up to 127"));
}

TEST_F(LinearKernels, ADepthThatOverflowsIsRefusedWithTheLargest) {
  open();
  const std::int64_t most = ((std::int64_t{1} << 31) - 1) / (127 * 127);
  EXPECT_THAT(refused_gemm({16, 16, 16 * 8324}, {.precisions = {"int8_imma"}, .operand_max = 127}),
              HasSubstr(fmt::format("k may be at most {}", most)));
  EXPECT_THAT(refused_gemm({16, 16, 16}, {.precisions = {"fp16_hmma"}, .operand_max = 2048}),
              HasSubstr("k may be at most 4"));
}

TEST_F(LinearKernels, ADeviceWithoutCudaSaysSo) {
  open();
  driver_ = device::make_host_driver();
  device_ = driver_->open(0).value();
  EXPECT_THAT(refused_gemv({.n = 64, .k = 64}),
              HasSubstr("program 'gemv' is written in cuda; device host:0 runs host"));
}

TEST(ShippedLinear, TextsAreThoseOfTheFiles) {
  for (const std::string_view name : program::linear::shipped_names()) {
    const auto file = system_files().read(fmt::format("programs/linear/{}.toml", name));
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ(program::linear::shipped_program_text(name), *file);
    EXPECT_TRUE(program::linear::shipped_program(name));
  }
  const auto none = program::linear::shipped_program("gemvv");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text(), HasSubstr("did you mean 'gemv'"));
}

}  // namespace
}  // namespace furlong::kernel
