#pragma once
// A program, a simulated card that runs it as told, and a race over both: what the tests of this part share.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "furlong/device/sim/sim.h"
#include "furlong/race/quarantine.h"
#include "furlong/race/race.h"

namespace furlong::race::testing {

// y[i] = 3 x[i] + i (mod 2^32). LAZY changes neither text nor launch: a copy of base's code.
inline constexpr std::string_view mix_text = R"toml(
format = 1
[program]
name = "mix"
[source.host]
entry = "mix"
text = """
extern "C" void mix(const furlong_block& block, const uint32_t* x, uint32_t* y, uint32_t n) {
  const uint64_t from = block.x * CHUNK, to = from + CHUNK < n ? from + CHUNK : n;
  for (uint64_t i = from; i < to; ++i) y[i] = 3 * x[i] + (uint32_t)i + 0 * UNROLL;
}
"""
[problem]
n = 4096
[launch]
grid = "ceil_div(n, CHUNK) + 0 * LAZY"
[[argument]]
name = "x"
type = "u32"
size = "n"
fill = "random"
high = 4294967295
[[argument]]
name = "y"
type = "u32"
size = "n"
direction = "out"
[[argument]]
name = "n"
kind = "scalar"
type = "u32"
value = "n"
[check]
kind = "exact"
reference = "base"
problem = { n = 1000 }
[work]
unit = "element"
amount = "n"
bytes = "8 * n"
rate_unit = "M/s"
rate_scale = 1e6
[[knob]]
name = "UNROLL"
values = [1, 2, 4, 8]
tags = ["", "u2", "u4", "u8"]
applies = "define"
wins = "the loop's counter and branch cost as much as its body"
loses = "the body spills"
evidence = "a test"
[[knob]]
name = "CHUNK"
values = [128, 64, 256, 512]
tags = ["", "c64", "c256", "c512"]
applies = ["define", "launch"]
wins = "few blocks cost less to start"
loses = "the last ones run alone"
[[knob]]
name = "LAZY"
values = [0, 1]
tags = ["", "lazy"]
applies = "launch"
wins = "nowhere"
loses = "nowhere"
[catalogue]
host = ["base", "u2", "u4", "u8", "c64", "c256", "c512", "u2-c64", "u2-c256", "u2-c512", "u4-c64", "u4-c256", "u4-c512",
        "u8-c64", "u8-c256", "u8-c512", "u2-lazy"]
)toml";

/// What a test may do to one launch of one variant, after it was computed rightly.
struct Call {
  std::string variant;
  std::uint32_t* x;
  std::uint32_t* y;  ///< the buffer is writable beyond y[n] and before y[0]: its guard zones
  std::uint32_t n;
  int launch;  ///< of this variant, from 0
};
using Tamper = std::function<void(const Call&)>;

inline std::shared_ptr<const program::Program> parse(std::string_view text) {
  FakeFiles files;
  auto program = program::parse_program(text, "mix.toml", "/nowhere", files);
  EXPECT_TRUE(program) << program.error().text();
  return program ? *program : nullptr;
}

inline std::uint8_t* data_of(const device::Argument& argument) {
  const auto& buffer = std::get<device::BufferArgument>(argument);
  return device::sim_buffer_bytes(*buffer.buffer) + buffer.offset;
}

/// Options are changed before open(), which the first race does by itself.
class Stage {
 public:
  explicit Stage(std::shared_ptr<const program::Program> given = parse(mix_text))
      : program(std::move(given)) {
    sim.timing.noise = 0.002;
    options.seed = 7;
  }
  void open() {
    sim.behaviour = [this](const device::CompileRequest& module, const device::Launch& launch) {
      return run_mix(module, launch);
    };
    driver = device::make_sim_driver({sim}, clock);
    auto opened = driver->open(0);
    ASSERT_TRUE(opened) << opened.error().text();
    device = *std::move(opened);
    auto made = program::Instance::make(program, "host", problem, {});
    ASSERT_TRUE(made) << made.error().text();
    instance.emplace(*std::move(made));
    context.device = device.get();
    context.clock = clock.get();
  }
  Result<Outcome> race(const std::string& variants = "catalogue") {
    if (!device) open();
    auto points = instance->select(variants);
    EXPECT_TRUE(points) << points.error().text();
    if (!points) return Error(points.error());
    return run(*instance, *points, options, context);
  }
  /// For races that must not fail.
  Outcome outcome(const std::string& variants = "catalogue") {
    auto raced = race(variants);
    EXPECT_TRUE(raced) << raced.error().text();
    return raced ? *std::move(raced) : Outcome{};
  }

  std::shared_ptr<const program::Program> program;
  std::vector<std::pair<std::string, lattice::Value>> problem;
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  device::SimOptions sim;
  Options options;
  Context context;
  std::map<std::string, Tamper> tamper;  ///< by variant
  std::map<std::string, int> launches;   ///< by variant
  std::unique_ptr<device::Driver> driver;
  std::unique_ptr<device::Device> device;
  std::optional<program::Instance> instance;

 private:
  Status run_mix(const device::CompileRequest& module, const device::Launch& launch) {
    if (launch.arguments.size() != 3) return fail(Code::invalid, "{} arguments", launch.arguments.size());
    Call call{module.name, reinterpret_cast<std::uint32_t*>(data_of(launch.arguments[0])),
              reinterpret_cast<std::uint32_t*>(data_of(launch.arguments[1])),
              load_le<std::uint32_t>(std::get<Bytes>(launch.arguments[2]).data()), launches[module.name]++};
    const auto found = tamper.find(call.variant);
    if (found != tamper.end() && skip_kernel) {
      found->second(call);
      return {};
    }
    for (std::uint32_t i = 0; i < call.n; ++i) call.y[i] = 3 * call.x[i] + i;
    if (found != tamper.end()) found->second(call);
    return {};
  }

 public:
  bool skip_kernel = false;  ///< tampered variants do nothing else
};

/// Another device with other facts or telemetry.
class Wrapped : public device::Device {
 public:
  explicit Wrapped(device::Device& inner) : facts_changed(inner.facts()), inner_(inner) {}
  const device::Facts& facts() const override { return facts_changed; }
  Result<std::shared_ptr<device::Module>> compile(const device::CompileRequest& request,
                                                  std::stop_token stop) override {
    return inner_.compile(request, stop);
  }
  Result<std::unique_ptr<device::Buffer>> allocate(std::size_t bytes) override {
    return inner_.allocate(bytes);
  }
  Status launch(const device::Launch& launch) override { return inner_.launch(launch); }
  Status finish() override { return inner_.finish(); }
  Result<std::vector<double>> time(const device::TimeRequest& request) override {
    return inner_.time(request);
  }
  device::MemoryInUse memory() const override { return inner_.memory(); }
  void set_memory_limit(std::uint64_t bytes) override { inner_.set_memory_limit(bytes); }
  device::Telemetry telemetry() override {
    device::Telemetry seen = inner_.telemetry();
    if (hide_energy) seen.energy_j.reset();
    return seen;
  }
  int compile_threads() const override { return 1; }

  device::Facts facts_changed;
  bool hide_energy = false;

 private:
  device::Device& inner_;
};

/// A disk without room for another byte, to this process, while it lives: no file may grow. SQLite answers as
/// it does on a full disk.
class FullDisk {
 public:
  FullDisk() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~FullDisk() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

inline const VariantOutcome& variant(const Outcome& outcome, std::string_view name) {
  static const VariantOutcome none;
  for (const VariantOutcome& one : outcome.variants)
    if (one.name == name) return one;
  ADD_FAILURE() << "no variant " << name;
  return none;
}

inline std::string winner_of(const Outcome& outcome) {
  return outcome.variants.empty() ? "" : outcome.variants[outcome.winner].name;
}

}  // namespace furlong::race::testing
