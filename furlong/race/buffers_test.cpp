// Guard zones, poison, datasets and accumulating arguments; the windows of the sampler.
#include "furlong/race/buffers.h"

#include <cmath>

#include "furlong/race/internal/sampler.h"
#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using testing::parse;

// y[i] += x[i] + table[i % 1024]
constexpr std::string_view accumulate_text = R"toml(
format = 1
[program]
name = "accumulate"
[source.host]
entry = "accumulate"
text = "extern \"C\" void accumulate(const furlong_block&, const uint32_t*, uint32_t*, const uint32_t*) {}"
[problem]
n = 3000
[launch]
grid = 1
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
direction = "inout"
fill = "sequence"
[[argument]]
name = "table"
type = "u32"
size = "n"
fill = "random"
[[argument]]
name = "spare"
type = "u32"
size = "8 * W"
direction = "scratch"
[check]
kind = "exact"
reference = "base"
[work]
amount = "n"
[[knob]]
name = "W"
values = [1, 2, 4]
tags = ["", "w2", "w4"]
applies = ["define", "launch"]
wins = "here"
loses = "there"
)toml";

class Table : public program::Recipe {
 public:
  std::string name() const override { return "table"; }
  std::uint64_t dataset_bytes() const override { return 100'000; }
  Status build_dataset(std::span<std::uint8_t> into, int, std::stop_token stop) const override {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped");
    ++built;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    return {};
  }
  Status reference(const program::Program&, const lattice::Environment&, const std::vector<Bytes>&,
                   std::vector<Bytes>&) const override {
    return fail(Code::internal, "not used");
  }
  std::string dataset_key() const override { return key; }
  std::string key;
  mutable int built = 0;
};

struct Accumulate {
  std::shared_ptr<Table> table = std::make_shared<Table>();
  std::shared_ptr<program::Program> program = std::make_shared<program::Program>(*parse(accumulate_text));
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::function<void(const std::string& variant, std::uint32_t* y, std::uint32_t* dataset)> tamper;
  std::unique_ptr<device::Driver> driver;
  std::unique_ptr<device::Device> device;
  std::optional<program::Instance> instance;
  Options options;
  Context context;

  Accumulate() {
    program->arguments[2].kind = program::ArgumentKind::dataset;
    program->arguments[2].fill = program::Fill::none;
    program->recipe = table;
    device::SimOptions sim;
    sim.behaviour = [this](const device::CompileRequest& module, const device::Launch& launch) -> Status {
      const auto* x = reinterpret_cast<const std::uint32_t*>(testing::data_of(launch.arguments[0]));
      auto* y = reinterpret_cast<std::uint32_t*>(testing::data_of(launch.arguments[1]));
      auto* dataset = reinterpret_cast<std::uint32_t*>(testing::data_of(launch.arguments[2]));
      for (std::uint32_t i = 0; i < 3000; ++i) y[i] += x[i] + dataset[i % 1024];
      if (tamper) tamper(module.name, y, dataset);
      return {};
    };
    driver = device::make_sim_driver({sim}, clock);
    device = driver->open(0).value();
    instance.emplace(program::Instance::make(program, "host", {}, {}).value());
    context.device = device.get();
    context.clock = clock.get();
  }
  Outcome race() {
    const auto points = instance->select("w2,w4").value();
    auto raced = run(*instance, points, options, context);
    EXPECT_TRUE(raced) << raced.error().text();
    return raced ? *std::move(raced) : Outcome{};
  }
};

TEST(Buffers, GiveEveryRunTheSameInoutContents) {
  Accumulate setup;
  const Outcome outcome = setup.race();
  EXPECT_TRUE(testing::variant(outcome, "w2").gated) << testing::variant(outcome, "w2").why;
  EXPECT_TRUE(testing::variant(outcome, "w4").gated);
  EXPECT_EQ(setup.table->built, 1) << "one dataset for all variants";
}

TEST(Buffers, CatchAWriteToTheDatasetAndMendIt) {
  Accumulate setup;
  setup.tamper = [](const std::string& variant, std::uint32_t*, std::uint32_t* dataset) {
    if (variant == "w2") dataset[0] ^= 1;  // either end is looked at every time
  };
  const Outcome outcome = setup.race();
  EXPECT_EQ(testing::variant(outcome, "w2").exit, Exit::gate);
  EXPECT_NE(testing::variant(outcome, "w2").why.find("wrote to its input 'table'"), std::string::npos)
      << testing::variant(outcome, "w2").why;
  EXPECT_TRUE(testing::variant(outcome, "w4").gated) << testing::variant(outcome, "w4").why;
  EXPECT_EQ(setup.table->built, 2) << "it was not built again";
}

/// The same program made again, as another class of one epoch would be: its own object and recipe.
struct Again {
  explicit Again(Accumulate& first, const std::string& key) {
    table->key = key;
    program->arguments[2].kind = program::ArgumentKind::dataset;
    program->arguments[2].fill = program::Fill::none;
    program->recipe = table;
    instance.emplace(program::Instance::make(program, "host", {}, {}).value());
    const auto points = instance->select("w2").value();
    auto raced = run(*instance, points, first.options, first.context);
    EXPECT_TRUE(raced) << raced.error().text();
    if (raced) {
      EXPECT_TRUE(testing::variant(*raced, "w2").gated) << testing::variant(*raced, "w2").why;
    }
  }
  std::shared_ptr<Table> table = std::make_shared<Table>();
  std::shared_ptr<program::Program> program = std::make_shared<program::Program>(*parse(accumulate_text));
  std::optional<program::Instance> instance;
};

TEST(Buffers, ShareADatasetOfOneKeyAtItsAddress) {
  Accumulate setup;
  Kept kept;
  setup.context.kept = &kept;
  setup.table->key = "table of day 3";
  setup.race();
  const std::shared_ptr<Buffers> first = kept.buffers;
  const Again same(setup, "table of day 3");
  EXPECT_EQ(same.table->built, 0) << "it was there already";
  EXPECT_NE(kept.buffers, first);
  EXPECT_EQ(kept.buffers->argument(2).buffer, first->argument(2).buffer);
  EXPECT_NE(kept.buffers->argument(1).buffer, first->argument(1).buffer);
  // Whoever comes later still sees a write to it, and mends it for both.
  setup.tamper = [](const std::string& variant, std::uint32_t*, std::uint32_t* dataset) {
    if (variant == "w4") dataset[0] ^= 1;
  };
  kept.buffers = first;
  const Outcome outcome = setup.race();
  EXPECT_EQ(testing::variant(outcome, "w4").exit, Exit::gate);
  EXPECT_EQ(setup.table->built, 2);
}

TEST(Buffers, ShareNoDatasetOfAnotherKeyOrNone) {
  for (const auto& [before, after] : {std::pair{"day 3", "day 4"}, std::pair{"", ""}}) {
    Accumulate setup;
    Kept kept;
    setup.context.kept = &kept;
    setup.table->key = before;
    setup.race();
    const std::shared_ptr<Buffers> first = kept.buffers;
    const Again other(setup, after);
    EXPECT_EQ(other.table->built, 1) << after;
    EXPECT_NE(kept.buffers->argument(2).buffer, first->argument(2).buffer) << after;
  }
}

TEST(Buffers, ReportsWhatAVariantNeeds) {
  Accumulate setup;
  const Outcome outcome = setup.race();
  EXPECT_EQ(testing::variant(outcome, "base").memory_bytes, 2 * 12000 + 100'000 + 32u);
  EXPECT_EQ(testing::variant(outcome, "w4").memory_bytes, 2 * 12000 + 100'000 + 128u) << "its own scratch";
}

TEST(Buffers, SayWhenThereIsNoRoom) {
  Accumulate setup;
  setup.device->set_memory_limit(50'000);
  const auto raced = run(*setup.instance, setup.instance->select("w2").value(), setup.options, setup.context);
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::exhausted);
  EXPECT_NE(raced.error().text().find("'table'"), std::string::npos) << raced.error().text();
}

struct Loaded {
  Accumulate setup;
  program::RunInputs inputs = setup.instance->timed_inputs(1, {}).value();
  std::unique_ptr<Buffers> buffers =
      Buffers::allocate(*setup.device, setup.program, inputs.buffer_bytes, 1).value();
};

TEST(Buffers, PoisonEveryByteThatIsExpected) {
  auto program = std::make_shared<program::Program>(*parse(testing::mix_text));
  Loaded loaded;
  auto instance = program::Instance::make(program, "host", {}, {}).value();
  for (const int n : {1, 77, 4096, 1'000'000}) {
    program::RunInputs inputs = instance.timed_inputs(1, {}).value();
    inputs.buffer_bytes[1] = static_cast<std::size_t>(n);
    inputs.buffer_bytes[0] = 0;
    inputs.bytes[0].clear();
    const auto buffers = Buffers::allocate(*loaded.setup.device, program, inputs.buffer_bytes, 1).value();
    Random random(3);
    std::vector<Bytes> expected(3);
    for (int i = 0; i < n; ++i) expected[1].push_back(static_cast<std::uint8_t>(random.next()));
    ASSERT_TRUE(buffers->load(inputs, 1));
    ASSERT_TRUE(buffers->poison(inputs, expected, random));
    const Bytes got = buffers->read(1, inputs).value();
    int equal = 0;
    for (std::size_t i = 0; i < got.size(); ++i) equal += got[i] == expected[1][i];
    EXPECT_EQ(equal, 0) << n;
    EXPECT_TRUE(buffers->check_guards(inputs)) << "the poison went over the edge";
  }
}

TEST(Buffers, SeeEveryByteOfTheGuardZones) {
  Loaded loaded;
  const std::size_t size = loaded.inputs.buffer_bytes[1];
  auto argument = loaded.buffers->argument(1);
  std::uint8_t* data = device::sim_buffer_bytes(*argument.buffer) + argument.offset;
  for (const std::ptrdiff_t place : {std::ptrdiff_t{-1}, -static_cast<std::ptrdiff_t>(Buffers::guard_bytes),
                                     static_cast<std::ptrdiff_t>(size), static_cast<std::ptrdiff_t>(size + 1),
                                     static_cast<std::ptrdiff_t>(size + Buffers::guard_bytes - 1)}) {
    ASSERT_TRUE(loaded.buffers->load(loaded.inputs, 1));
    ASSERT_TRUE(loaded.buffers->check_guards(loaded.inputs));
    data[place] ^= 0x40;
    EXPECT_FALSE(loaded.buffers->check_guards(loaded.inputs)) << place;
    ASSERT_TRUE(loaded.buffers->load(loaded.inputs, 1));
    EXPECT_TRUE(loaded.buffers->check_guards(loaded.inputs)) << "not painted anew after " << place;
  }
}

TEST(Buffers, AreAlignedForEveryLaunch) {
  Loaded loaded;
  for (const std::size_t i : {0, 1, 2, 3}) EXPECT_EQ(loaded.buffers->argument(i).offset % 256, 0u);
  EXPECT_TRUE(loaded.buffers->fits(*loaded.setup.device, *loaded.setup.program, loaded.inputs.buffer_bytes));
  auto more = loaded.inputs.buffer_bytes;
  more[0] += 256;
  EXPECT_FALSE(loaded.buffers->fits(*loaded.setup.device, *loaded.setup.program, more));
}

TEST(Window, HasThreeLaunchesOrItsLength) {
  EXPECT_EQ(plan_window(50, 50, 5, true).repeats, 4) << "a slow launch: three and the dropped first";
  EXPECT_EQ(plan_window(0.5, 0.5, 5, true).repeats, 11);
  EXPECT_EQ(plan_window(0.5, 0.5, 5, true).batch, 1);
}

TEST(Window, BatchesKernelsUnderFiftyMicroseconds) {
  const WindowPlan tiny = plan_window(0.005, 0.005, 5, true);
  EXPECT_EQ(tiny.batch, 100);
  EXPECT_EQ(tiny.repeats, 11);
  EXPECT_EQ(plan_window(0.005, 0.005, 5, false).batch, 1) << "cold caches: each launch is flushed before";
  // On either side of the limit a variant is timed as base is.
  EXPECT_EQ(plan_window(0.051, 0.049, 5, true).batch, plan_window(0.049, 0.049, 5, true).batch);
  EXPECT_EQ(plan_window(0.049, 0.051, 5, true).batch, 1);
  EXPECT_LE(plan_window(1e-9, 1e-9, 5, true).batch, 4096);
}

TEST(Window, IsTheMedianOfItsSamples) {
  const double samples[] = {3, 1, 2};
  EXPECT_EQ(window_value(samples), 2);
  EXPECT_TRUE(std::isnan(window_value({})));
}

}  // namespace
}  // namespace furlong::race
