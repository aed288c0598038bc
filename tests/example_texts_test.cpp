// The CUDA texts of the examples: every variant of every catalogue compiles for every generation of card that
// NVRTC knows, and each knob of the text reaches the machine code. That they compute the right thing,
// tests/e2e/examples_test.py shows without a card.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "furlong/base/os/file.h"
#include "furlong/program/instance.h"
#include "furlong/race/internal/entrant.h"
#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include "furlong/device/cuda/nvrtc.h"

namespace furlong {
namespace {

struct Example {
  std::string name;
  /// Pairs of variants that differ in one knob of the text: their machine code must differ.
  std::vector<std::pair<std::string, std::string>> differ;
};

void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

class ExampleTexts : public ::testing::TestWithParam<Example> {};

Result<program::Instance> instance_of(const std::string& name) {
  const std::filesystem::path folder = "examples/" + name;
  const std::string file = (folder / (name + ".toml")).string();
  FURLONG_TRY(const std::string text, system_files().read(file));
  FURLONG_TRY(const auto program, program::parse_program(text, file, folder, system_files()));
  return program::Instance::make(program, "cuda", {}, {});
}

TEST_P(ExampleTexts, EveryVariantCompilesForEveryGeneration) {
  const auto nvrtc = device::Nvrtc::open();
  if (!nvrtc && nvrtc.error().code() == Code::unavailable) GTEST_SKIP() << nvrtc.error().text();
  ASSERT_TRUE(nvrtc) << nvrtc.error().text();
  const auto instance = instance_of(GetParam().name);
  ASSERT_TRUE(instance) << instance.error().text();
  const auto points = instance->select("catalogue");
  ASSERT_TRUE(points) << points.error().text();
  ASSERT_EQ(points->size(), instance->lattice().catalogue.size());
  const auto known = nvrtc->architectures();
  for (const char* arch : {"sm_80", "sm_90", "sm_120"}) {
    if (std::find(known.begin(), known.end(), arch) == known.end()) continue;  // an older NVRTC
    std::map<Digest, std::string> code_of;  // variants that differ in the launch alone are one text
    std::map<std::string, std::string> code;
    for (const lattice::Point& point : *points) {
      const auto plan = instance->plan(point);
      ASSERT_TRUE(plan) << plan.error().text();
      std::string& compiled = code_of[plan->source_hash];
      if (compiled.empty()) {
        const auto cubin = nvrtc->compile(race::compile_request(*instance, *plan, 0), arch);
        ASSERT_TRUE(cubin) << arch << ": " << plan->name << ": " << cubin.error().text();
        // The compiler itself may trade a few bytes for one more block on a multiprocessor.
        EXPECT_LE(cubin->spill_bytes.value_or(0), 32u) << arch << ": " << plan->name;
        compiled = cubin->code_hash;
      }
      code[plan->name] = compiled;
    }
    for (const auto& [one, other] : GetParam().differ) {
      ASSERT_TRUE(code.contains(one) && code.contains(other)) << one << ", " << other;
      EXPECT_NE(code[one], code[other]) << arch << ": " << one << ", " << other;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExampleTexts,
                         ::testing::Values(Example{"reduction",
                                                   {{"base", "w4"},
                                                    {"base", "u4"},
                                                    {"base", "tree"},
                                                    {"w4-u4", "w4-u4-cs"},
                                                    {"w4-u4", "b512-w4-u2"}}},
                                           Example{"transpose",
                                                   {{"base", "t8"},
                                                    {"base", "direct"},
                                                    {"t32", "t32-k4"},
                                                    {"t32-k4", "t32-k4-pad"},
                                                    {"t32-k4-pad", "t32-k4-xor"},
                                                    {"t32-k4-pad", "t32-k4-pad-cs"}}},
                                           Example{"convolution",
                                                   {{"base", "u"},
                                                    {"base", "wx4"},
                                                    {"base", "y16"},
                                                    {"base", "local"},
                                                    {"local", "local-pad"},
                                                    {"u", "ws-u"},
                                                    {"u", "wy4-u"}}},
                                           Example{"histogram",
                                                   {{"base", "h4"},
                                                    {"base", "v4"},
                                                    {"v4", "v16"},
                                                    {"base", "m"},
                                                    {"base", "global"},
                                                    {"base", "b512"},
                                                    {"h4", "h8-bw"}}}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace furlong
#endif
