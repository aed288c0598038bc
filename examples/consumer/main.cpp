// Races two variants of a kernel from a C++ program: the whole of embedding Furlong in one file.
#include <cstdio>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/device/host/host.h"
#include "furlong/program/instance.h"
#include "furlong/race/race.h"

namespace {

constexpr const char* kProgram = R"toml(
format = 1
[program]
name = "scale"
language = "host"
source = "scale.cpp"
entry = "scale"
[problem]
n = 65536
[launch]
grid = "ceil_div(n, 1024)"
block = 1
[[argument]]
name = "n"
kind = "scalar"
type = "u32"
value = "n"
[[argument]]
name = "x"
kind = "buffer"
type = "f32"
size = "n"
fill = "random"
[[argument]]
name = "y"
kind = "buffer"
type = "f32"
size = "n"
direction = "out"
fill = "poison"
[check]
kind = "exact"
reference = "base"
[work]
unit = "element"
amount = "n"
[[knob]]
name = "UNROLL"
values = [1, 8]
default = 1
tags = ["", "u8"]
applies = "define"
wins = "long arrays: fewer branches"
loses = "short arrays: a longer tail"
)toml";

constexpr const char* kKernel = R"cpp(
  extern "C" void scale(const furlong_block& block, unsigned n, const float* x, float* y) {
    const unsigned begin = block.x * 1024, end = begin + 1024 < n ? begin + 1024 : n;
    unsigned i = begin;
    for (; i + UNROLL <= end; i += UNROLL)
      for (unsigned k = 0; k < UNROLL; ++k) y[i + k] = 3.0f * x[i + k];
    for (; i < end; ++i) y[i] = 3.0f * x[i];
  }
)cpp";

furlong::Status race() {
  furlong::FakeFiles files;  // the program lives in memory
  FURLONG_CHECK(files.write_atomic("scale.cpp", kKernel));
  FURLONG_TRY(const auto program, furlong::program::parse_program(kProgram, "scale.toml", "", files));
  const auto driver = furlong::device::make_host_driver();
  FURLONG_TRY(const auto device, driver->open(0));
  FURLONG_TRY(const auto instance, furlong::program::Instance::make(program, "host", {}, {}));
  FURLONG_TRY(const auto points, instance.select("catalogue"));
  furlong::race::Context context;
  context.device = device.get();
  context.clock = &furlong::system_clock();
  furlong::race::Options options;
  options.budget_s = 5;
  options.trial = false;  // our own kernels: nothing unknown to try apart
  FURLONG_TRY(const auto outcome, furlong::race::run(instance, points, options, context));
  std::printf("%s\n", outcome.sentence.c_str());
  return {};
}

}  // namespace

int main() {
  const furlong::Status status = race();
  if (!status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
  return status ? 0 : 1;
}
