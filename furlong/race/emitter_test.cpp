// Races of programs with an emitter: launches that run once, scalars of one launch, notes.
#ifndef FURLONG_WITHOUT_DEVICE_HOST
#include "furlong/device/host/host.h"
#endif
#include "furlong/base/json.h"
#include "furlong/program/internal/test_emitter.h"
#include "furlong/race/internal/entrant.h"
#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using program::testing::emitted_with;
using program::testing::read_emitted;
using testing::data_of;
using testing::variant;

std::uint32_t word(const device::Argument& argument, std::uint32_t i = 0) {
  if (const auto* bytes = std::get_if<Bytes>(&argument)) return load_le<std::uint32_t>(bytes->data());
  return load_le<std::uint32_t>(data_of(argument) + 4 * i);
}

/// The test emitter's kernels on a simulated card, and what was seen of them.
struct Bench {
  explicit Bench(const std::string& text = std::string(program::testing::kEmitted)) {
    program = read_emitted(text).value();
    sim.timing.noise = 0.002;
    sim.behaviour = [this](const device::CompileRequest& module, const device::Launch& launch) {
      return launch.entry == "keep" ? keep(module, launch) : scale(module, launch);
    };
    options.seed = 7;
  }

  Outcome race(const std::string& variants) {
    driver = device::make_sim_driver({sim}, clock);
    device = driver->open(0).value();
    instance.emplace(program::Instance::make(program, "host", problem, {}).value());
    context.device = device.get();
    context.clock = clock.get();
    auto outcome = run(*instance, instance->select(variants).value(), options, context);
    EXPECT_TRUE(outcome) << outcome.error().text();
    return outcome ? *std::move(outcome) : Outcome{};
  }

  std::shared_ptr<const program::Program> program;
  std::vector<std::pair<std::string, lattice::Value>> problem;
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  device::SimOptions sim;
  Options options;
  Context context;
  std::unique_ptr<device::Driver> driver;
  std::unique_ptr<device::Device> device;
  std::optional<program::Instance> instance;
  std::map<std::string, int> kept;    ///< runs of a layout, by variant
  std::map<std::string, int> scaled;  ///< launches of the kernel, by variant
  std::string last_kept;              ///< by whom
  int foreign = 0;                    ///< launches that found a layout that is not their own
  double keep_ms = 0;                 ///< that making a layout passes on the clock
  bool spoils = false;                ///< "turned" leaves zeros in its layout

 private:
  static bool turns(const device::CompileRequest& module) { return module.name.starts_with("turned"); }

  Status keep(const device::CompileRequest& module, const device::Launch& launch) {
    const std::uint32_t n = word(launch.arguments[2]);
    for (std::uint32_t i = 0; i < n; ++i)
      store_le<std::uint32_t>(data_of(launch.arguments[1]) + 4 * i,
                              word(launch.arguments[0], turns(module) ? n - 1 - i : i));
    ++kept[module.name];
    last_kept = module.name;
    clock->advance_ns(static_cast<std::int64_t>(1e6 * keep_ms));
    return {};
  }

  Status scale(const device::CompileRequest& module, const device::Launch& launch) {
    if (launch.arguments.size() != 5) return fail(Code::invalid, "{} arguments", launch.arguments.size());
    const std::uint32_t n = word(launch.arguments[2]);
    const std::uint32_t from = word(launch.arguments[3]), to = word(launch.arguments[4]);
    for (std::uint32_t i = from; i < to; ++i)
      store_le<std::uint32_t>(data_of(launch.arguments[1]) + 4 * i,
                              3 * word(launch.arguments[0], turns(module) ? n - 1 - i : i) + i);
    if (spoils && module.name == "turned")
      for (std::uint32_t i = from; i < to; ++i)
        store_le<std::uint32_t>(data_of(launch.arguments[0]) + 4 * (n - 1 - i), 0);
    ++scaled[module.name];
    if (module.name.starts_with("turned") || module.name.starts_with("copied"))
      foreign += last_kept != module.name;
    return {};
  }
};

TEST(EmitterRace, EachWindowFindsTheVariantsOwnLayout) {
  Bench bench;
  bench.sim.timing.gain = {{"turned", 0.1}};
  const Outcome outcome = bench.race("turned,copied,p3,turned-p2");
  for (const VariantOutcome& one : outcome.variants) EXPECT_TRUE(one.gated) << one.name << ": " << one.why;
  EXPECT_EQ(testing::winner_of(outcome), "turned");
  EXPECT_EQ(bench.foreign, 0);
  EXPECT_GT(bench.kept["turned"], 0);
  EXPECT_GT(bench.kept["copied"], 0);
  // Others had scratch between two windows, so once a window; in a window it is made once and used often.
  EXPECT_LT(bench.kept["turned"], bench.scaled["turned"] + 1);
  EXPECT_EQ(bench.kept["base"], 0);
}

TEST(EmitterRace, ALayoutIsMadeAgainOnlyWhenItMayBeGone) {
  Bench bench(
      emitted_with("values = [\"plain\", \"turned\", \"copied\"]",
                   "values = [\"turned\", \"plain\", \"copied\"]\ntags = [\"\", \"plain\", \"copied\"]"));
  // Base, whose name is not its layout's here, races alone.
  bench.sim.behaviour = [&](const device::CompileRequest& module, const device::Launch& launch) {
    ++(launch.entry == "keep" ? bench.kept : bench.scaled)[module.name];
    if (launch.entry != "keep")
      for (std::uint32_t i = word(launch.arguments[3]); i < word(launch.arguments[4]); ++i)
        store_le<std::uint32_t>(data_of(launch.arguments[1]) + 4 * i,
                                3 * word(launch.arguments[0], word(launch.arguments[2]) - 1 - i) + i);
    else
      for (std::uint32_t i = 0; i < word(launch.arguments[2]); ++i)
        store_le<std::uint32_t>(data_of(launch.arguments[1]) + 4 * i,
                                word(launch.arguments[0], word(launch.arguments[2]) - 1 - i));
    return Status();
  };
  const Outcome outcome = bench.race("base");
  EXPECT_TRUE(outcome.variants[0].gated);
  EXPECT_FALSE(outcome.heats.empty());
  // In the gate at the check's size once and at the timed size three times (its output there is the
  // reference, made twice), then once for all windows.
  EXPECT_EQ(bench.kept["base"], 5);
  EXPECT_GT(bench.scaled["base"], bench.kept["base"]);
}

// The first launch after the layout was made is right; the thousands that it is to serve are not.
TEST(EmitterRace, ALayoutThatALaunchSpoilsIsFoundInTheGate) {
  Bench bench;
  bench.spoils = true;
  const Outcome outcome = bench.race("turned,copied");
  EXPECT_EQ(variant(outcome, "turned").exit, Exit::gate) << variant(outcome, "turned").why;
  EXPECT_TRUE(variant(outcome, "copied").gated) << variant(outcome, "copied").why;
}

// Equal code and launches under two bounds are two variants: a duplicate is never gated, so it would never
// meet its own.
TEST(EmitterRace, ABoundByKnobIsOfTheLaunchesKey) {
  constexpr std::string_view kText = R"(
format = 1
[program]
name = "bounds"
[source.host]
text = "x"
entry = "f"
[problem]
n = 16
[launch]
grid = "1 if mode == 'loose' else 1"
[[argument]]
name = "y"
type = "f32"
size = "n"
direction = "out"
[check]
kind = "tolerance"
bound = "1e-6 if mode == 'exact' else 0.05"
[work]
amount = "n"
[[knob]]
name = "mode"
values = ["loose", "exact"]
tags = ["", "exact"]
applies = "launch"
)";
  const auto keys = [](std::string text) {
    const auto program = program::parse_program(text, "bounds.toml", {}, system_files());
    EXPECT_TRUE(program) << program.error().text();
    const auto instance = program::Instance::make(*program, "host", {}, {});
    EXPECT_TRUE(instance) << instance.error().text();
    const auto points = instance->select("exact");
    EXPECT_TRUE(points) << points.error().text();
    const auto inputs = instance->timed_inputs(1, *points);
    EXPECT_TRUE(inputs) << inputs.error().text();
    const program::RunInputs* cases[] = {&*inputs};
    std::vector<std::string> found;
    for (const lattice::Point& point : *points) {
      Entrant entrant;
      entrant.point = point;
      const Status described = describe(*instance, entrant, cases);
      EXPECT_TRUE(described) << described.error().text();
      found.push_back(entrant.launch_key);
    }
    return found;
  };
  std::string constant(kText);
  const std::string_view bound = "\"1e-6 if mode == 'exact' else 0.05\"";
  constant.replace(constant.find(bound), bound.size(), "0.05");
  const auto two = keys(std::string(kText)), one = keys(constant);
  ASSERT_EQ(two.size(), 2u);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_NE(two[0], two[1]);
  EXPECT_EQ(one[0], one[1]);
}

TEST(EmitterRace, WhatRunsOnceIsNotTimed) {
  Bench quick, slow;
  slow.keep_ms = 5;
  for (Bench* bench : {&quick, &slow}) bench->sim.timing.gain = {{"turned", 0.1}};
  const Outcome a = quick.race("turned"), b = slow.race("turned");
  ASSERT_TRUE(variant(a, "turned").rate && variant(b, "turned").rate);
  EXPECT_NEAR(*variant(b, "turned").rate / *variant(a, "turned").rate, 1, 0.02);
  EXPECT_EQ(variant(b, "turned").work_amount, 4096);
  EXPECT_EQ(testing::winner_of(b), "turned");
  EXPECT_GT(b.heats_ms, a.heats_ms);  // though it takes the race's time
}

TEST(EmitterRace, ClassicAndEnergyWindowsHaveTheirLayoutToo) {
  Bench classic;
  classic.options.classic = true;
  classic.options.rounds = 2;
  classic.options.classic_window_s = 0.05;
  classic.race("turned,copied");
  EXPECT_EQ(classic.foreign, 0);
  EXPECT_GT(classic.kept["copied"], 2);

  Bench energy;
  energy.options.metric = Metric::energy;
  energy.options.energy_window_s = 0.2;
  const Outcome outcome = energy.race("turned,copied");
  EXPECT_EQ(energy.foreign, 0);
  EXPECT_TRUE(std::ranges::any_of(outcome.heats,
                                  [](const HeatRecord& heat) { return !heat.energy_j_per_unit.empty(); }));
}

TEST(EmitterRace, WhoServesWithTheBuffersMayOverwriteALayout) {
  Bench bench;
  Kept kept;
  bench.context.kept = &kept;
  bench.context.acquire = [] {};
  bench.context.release = [&] { bench.last_kept = "a server"; };
  bench.race("turned");
  EXPECT_EQ(bench.foreign, 0);
}

TEST(EmitterRace, NotesOfVariantsAreThoseOfTheRace) {
  Bench bench;
  bench.problem = {{"n", 2}};
  const Outcome outcome = bench.race("p3,turned-p3");
  EXPECT_EQ(std::ranges::count(outcome.notes, "p3: parts 3 is 2: there are no more elements"), 1);
  EXPECT_EQ(std::ranges::count(outcome.notes, "turned-p3: parts 3 is 2: there are no more elements"), 1);
  EXPECT_NE(to_json(*bench.instance, outcome, bench.options).dump().find("\"turned-p3: parts 3 is 2"),
            std::string::npos);
}

TEST(EmitterRace, WhatFellBackIsMarkedInOutcomeAndRecord) {
  Bench bench;
  bench.problem = {{"n", 2}};
  const Outcome outcome = bench.race("p2,p3");
  EXPECT_FALSE(variant(outcome, "base").fallback);
  EXPECT_FALSE(variant(outcome, "p2").fallback);
  EXPECT_TRUE(variant(outcome, "p3").fallback);
  const record::RaceRecord record = make_record(*bench.instance, outcome);
  EXPECT_FALSE(record.find("p2")->detail.fallback);
  EXPECT_TRUE(record.find("p3")->detail.fallback);
  const Json json = to_json(*bench.instance, outcome, bench.options);
  EXPECT_FALSE(json["variants"][1].contains("fallback"));
  EXPECT_EQ(json["variants"][2]["fallback"], true);
}

TEST(EmitterRace, ScalarsAndWhatRunsOnceTellLaunchesApart) {
  const auto key = [](std::function<void(program::Emitted&, std::int64_t)> change) {
    const auto made = read_emitted(program::testing::kEmitted,
                                   std::make_shared<program::testing::ScaleEmitter>(std::move(change)));
    const auto instance = program::Instance::make(*made, "host", {}, {}).value();
    Entrant entrant;
    entrant.point = *lattice::parse_variant(instance.lattice(), "turned-p2");
    entrant.plan = instance.plan(entrant.point).value();
    const program::RunInputs inputs = instance.timed_inputs(1, {}).value();
    const program::RunInputs* cases[] = {&inputs};
    EXPECT_TRUE(describe(instance, entrant, cases));
    return entrant.launch_key;
  };
  const std::string as_it_is = key({});
  EXPECT_EQ(key({}), as_it_is);
  EXPECT_NE(key([](program::Emitted& e, std::int64_t) { e.launches[1].scalars["to"] = 4095; }), as_it_is);
  EXPECT_NE(key([](program::Emitted& e, std::int64_t) { e.launches[2].once = false; }), as_it_is);
}

#ifndef FURLONG_WITHOUT_DEVICE_HOST
TEST(EmitterRace, RunsOnTheHost) {
  const auto driver = device::make_host_driver();
  auto opened = driver->open(0);
  if (!opened) GTEST_SKIP() << opened.error().text();
  const auto program = read_emitted().value();
  const auto instance = program::Instance::make(program, "host", {{"n", 5000}}, {}).value();
  Context context;
  context.device = context.host = opened->get();
  context.clock = &system_clock();
  Options options;
  options.budget_s = 60;
  options.window_ms = 1;
  options.rules.threshold = 10;  // no winner is wanted
  const auto outcome = run(instance, instance.select("turned,copied,turned-p3").value(), options, context);
  ASSERT_TRUE(outcome) << outcome.error().text();
  for (const VariantOutcome& one : outcome->variants) EXPECT_TRUE(one.gated) << one.name << ": " << one.why;
  EXPECT_NE(outcome->reference.find("recipe"), std::string::npos) << outcome->reference;
}
#endif

}  // namespace
}  // namespace furlong::race
