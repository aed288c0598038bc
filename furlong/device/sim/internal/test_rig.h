#pragma once
// One open simulated device with buffers and a kernel: what the tests of this part launch.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "furlong/device/sim/sim.h"

namespace furlong::device::internal {

// A kernel that stores its scalar into each byte of argument 0; argument 1 is an input that it adds.
inline Status store_plus(const CompileRequest&, const Launch& launch) {
  if (launch.arguments.size() != 3)
    return fail(Code::invalid, "3 arguments, not {}", launch.arguments.size());
  const auto& out = std::get<BufferArgument>(launch.arguments[0]);
  const auto& in = std::get<BufferArgument>(launch.arguments[1]);
  const std::uint8_t value = std::get<Bytes>(launch.arguments[2]).at(0);
  for (std::size_t i = 0; i + out.offset < out.buffer->size(); ++i)
    sim_buffer_bytes(*out.buffer)[out.offset + i] =
        static_cast<std::uint8_t>(value + sim_buffer_bytes(*in.buffer)[(in.offset + i) % in.buffer->size()]);
  return {};
}

inline SimOptions quiet() {
  SimOptions options;
  options.timing.noise = 0;
  options.timing.first_launch_slow = 0;
  return options;
}

// One open device with buffers and a way to launch and time a variant.
struct Rig {
  explicit Rig(SimOptions options) : clock(std::make_shared<FakeClock>()) {
    options.behaviour = store_plus;
    driver = make_sim_driver({std::move(options)}, clock);
    reopen();
  }
  void reopen() {
    modules.clear();
    out.reset();
    in.reset();
    device = driver->open(0).value();
    out = device->allocate(1024).value();
    in = device->allocate(1024).value();
  }
  Launch launch_of(const std::string& variant) {
    auto& module = modules[variant];
    if (!module) {
      CompileRequest request;
      request.language = Language::cuda;
      request.name = variant;
      request.source = "kernel " + variant;
      request.entries = {"k"};
      module = device->compile(request).value();
    }
    Launch launch;
    launch.module = module.get();
    launch.entry = "k";
    launch.block = {64, 1, 1};
    launch.arguments = {BufferArgument{out.get(), 0}, BufferArgument{in.get(), 0}, Bytes{7}};
    return launch;
  }
  Status run(const std::string& variant) {
    FURLONG_CHECK(device->launch(launch_of(variant)));
    return device->finish();
  }
  Result<std::vector<double>> time(const std::string& variant, int repeats, int batch = 1,
                                   Buffer* flush = nullptr) {
    const Launch launch = launch_of(variant);
    return device->time({{&launch, 1}, repeats, batch, flush});
  }
  Bytes output() {
    Bytes bytes(out->size());
    EXPECT_TRUE(out->read(0, bytes));
    return bytes;
  }

  std::shared_ptr<FakeClock> clock;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<Device> device;
  std::unique_ptr<Buffer> out, in;
  std::map<std::string, std::shared_ptr<Module>> modules;
};

}  // namespace furlong::device::internal
