#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/device/sim/sim.h"

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

std::string refused(std::string_view json, Code code = Code::invalid) {
  const auto options = parse_sim_options(json, "f.json");
  if (options) return "accepted";
  EXPECT_EQ(options.error().code(), code);
  return options.error().text();
}
std::string device(std::string_view members) {
  return fmt::format(R"({{"schema":1,"devices":[{{}},{{{}}}]}})", members);
}

std::string example_of(const std::string& page) {
  const std::string text = system_files().read(page).value();
  const std::string open = "```json\n";
  const std::size_t begin = text.find(open) + open.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

TEST(SimOptionsFile, TheExampleOfThePageIsReadWhole) {
  const auto devices = parse_sim_options(example_of("docs/formats/sim.md"), "sim.md").value();
  ASSERT_EQ(devices.size(), 2u);
  const SimOptions& first = devices[0];
  EXPECT_EQ(first.facts.label, "NVIDIA_GeForce_RTX_5090");
  EXPECT_EQ(first.facts.silicon.multiprocessors, 170);
  EXPECT_EQ(first.facts.silicon.memory_clock_mhz, 14001);
  EXPECT_EQ(first.facts.languages, std::vector<Language>{Language::cuda});
  EXPECT_EQ(first.memory_bytes, 34190917632u);
  EXPECT_EQ(first.seed, 7u);
  EXPECT_EQ(first.timing.gain.at("u2"), 0.021);
  EXPECT_EQ(first.timing.window_noise, 0.003);
  EXPECT_EQ(first.timing.step_at_s, std::vector<double>{2.5});
  ASSERT_EQ(first.faults.size(), 2u);
  EXPECT_EQ(first.faults[1].variant, "lb8-w2");
  EXPECT_EQ(first.faults[1].fault, SimFault::trap);
  EXPECT_EQ(first.faults[1].after_launches, 10000);
  EXPECT_EQ(first.registers.at("*"), 40);
  EXPECT_EQ(first.power_w.at("u2"), 410);
  EXPECT_EQ(devices[1].timing.trace_window, 3);
  EXPECT_EQ(devices[1].timing.trace_ms.at("*").size(), 6u);
  EXPECT_TRUE(make_sim_driver(devices)->open(1));
}

TEST(SimOptionsFile, EveryKeyOfThePageIsKnownAndEveryDefaultIsTheRealOne) {
  const auto read =
      parse_sim_options(
          device(
              R"("label":"L","silicon":{"vendor":"V","arch":"A","multiprocessors":1,"memory_bytes":2,"memory_clock_mhz":3},
    "driver":"D","compiler":"C","uuid":"U","languages":["host","metal"],"max_threads_per_block":64,"max_block":[64,2,1],
    "max_shared_bytes":5,"max_buffer_bytes":6,"warp":64,"runs_on_host_cpu":true,"memory_is_host_memory":true,
    "memory_bytes":7,"seed":8,"compile_ms":9,"compile_threads":10,"hang_ms":11,"transfer_gb_per_s":12,"registers":{"a":13},
    "power_w":{"a":14},"idle_w":15,"power_limit_w":16,"clock_mhz":17,
    "timing":{"base_ms":1,"gain":{"a":0.5},"noise":0.1,"window_noise":0.2,"autocorrelation":0.3,"jitter_ms":0.4,
      "ramp_per_s":0.5,"first_launch_slow":0.6,"cold_slow":0.7,"heavy_tail":0.8,"step_at_s":[0.9],
      "trace_ms":{"a":[1,2]},"trace_window":2},
    "faults":[{"variant":"a","fault":"wrong_output","after_launches":1,"for_launches":2,"argument":3}])"),
          "f.json")
          .value();
  const SimOptions& o = read.at(1);
  EXPECT_EQ(o.facts.silicon.vendor + o.facts.silicon.arch + o.facts.driver + o.facts.compiler + o.facts.uuid,
            "VADCU");
  EXPECT_EQ(o.facts.languages, (std::vector<Language>{Language::host, Language::metal}));
  EXPECT_EQ(o.facts.max_block, (std::array<std::uint64_t, 3>{64, 2, 1}));
  EXPECT_EQ(o.facts.max_threads_per_block, 64);
  EXPECT_EQ(o.facts.max_shared_bytes, 5u);
  EXPECT_EQ(o.facts.max_buffer_bytes, 6u);
  EXPECT_EQ(o.facts.warp, 64);
  EXPECT_TRUE(o.facts.runs_on_host_cpu && o.facts.memory_is_host_memory);
  EXPECT_EQ(o.memory_bytes, 7u);
  EXPECT_EQ(o.seed, 8u);
  EXPECT_EQ(o.compile_ms, 9);
  EXPECT_EQ(o.compile_threads, 10);
  EXPECT_EQ(o.hang_ms, 11);
  EXPECT_EQ(o.transfer_gb_per_s, 12);
  EXPECT_EQ(o.registers.at("a"), 13);
  EXPECT_EQ(o.power_w.at("a"), 14);
  EXPECT_EQ(o.idle_w, 15);
  EXPECT_EQ(o.power_limit_w, 16);
  EXPECT_EQ(o.clock_mhz, 17);
  const SimTiming& t = o.timing;
  EXPECT_EQ(
      (std::vector<double>{t.base_ms, t.gain.at("a"), t.noise, t.window_noise, t.autocorrelation, t.jitter_ms,
                           t.ramp_per_s, t.first_launch_slow, t.cold_slow, t.heavy_tail, t.step_at_s.at(0)}),
      (std::vector<double>{1, 0.5, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}));
  EXPECT_EQ(t.trace_ms.at("a"), (std::vector<double>{1, 2}));
  EXPECT_EQ(t.trace_window, 2);
  EXPECT_EQ(o.faults.at(0).argument, 3);
  EXPECT_EQ(o.faults.at(0).for_launches, 2);
  const std::string page = system_files().read("docs/formats/sim.md").value();
  for (const char* row : {"| `base_ms` | 0.25 |", "| `noise` | 0.001 |", "| `first_launch_slow` | 0.02 |",
                          "| `memory_bytes` | 8589934592 |", "| `hang_ms` | 2000 |", "| `clock_mhz` | 1500 |",
                          "| `transfer_gb_per_s` | 25 |", "| `compile_ms`, `compile_threads` | 50, 4 |",
                          "`{\"*\": 300}`, 60, 400 |", "| `seed` | 1 |"})
    EXPECT_THAT(page, HasSubstr(row));
  const SimOptions defaults = read.at(0);
  EXPECT_EQ(defaults.timing.base_ms, 0.25);
  EXPECT_EQ(defaults.timing.noise, 0.001);
  EXPECT_EQ(defaults.timing.first_launch_slow, 0.02);
  EXPECT_EQ(defaults.memory_bytes, 8589934592u);
  EXPECT_EQ(defaults.hang_ms, 2000);
  EXPECT_EQ(defaults.clock_mhz, 1500);
  EXPECT_EQ(defaults.transfer_gb_per_s, 25);
  EXPECT_EQ(defaults.compile_ms, 50);
  EXPECT_EQ(defaults.compile_threads, 4);
  EXPECT_EQ(defaults.idle_w, 60);
  EXPECT_EQ(defaults.power_limit_w, 400);
  EXPECT_EQ(defaults.seed, 1u);
}

TEST(SimOptionsFile, EveryFaultHasAName) {
  for (int i = 0; i <= static_cast<int>(SimFault::throttle); ++i) {
    const auto fault = static_cast<SimFault>(i);
    const auto read = parse_sim_options(
        device(fmt::format(R"("faults":[{{"variant":"a","fault":"{}"}}])", sim_fault_name(fault))), "f.json");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->at(1).faults.at(0).fault, fault);
  }
}

TEST(SimOptionsFile, ErrorsNameThePlaceAndTheMend) {
  EXPECT_EQ(refused(R"({"schema":2,"cards":[]})", Code::incompatible),
            "f.json: schema 2 is not known, expected 1");
  EXPECT_EQ(refused(R"({"devices":[]})"), "f.json.schema is missing");
  EXPECT_EQ(refused(R"({"schema":1})"), "f.json.devices is missing");
  EXPECT_EQ(refused(R"({"schema":1,"devices":{}})"), "f.json.devices must be an array, not object");
  EXPECT_EQ(refused(R"([])"), "f.json must be an object, not array");
  EXPECT_THAT(refused("{"), HasSubstr("f.json: byte 1"));
  EXPECT_EQ(refused(device(R"("timing":{"nois":1})")),
            "f.json: devices[1].timing: unknown key 'nois', did you mean 'noise'?");
  EXPECT_EQ(refused(device(R"("sed":1)")), "f.json: devices[1]: unknown key 'sed', did you mean 'seed'?");
  EXPECT_EQ(refused(device(R"("seed":"1")")), "f.json: devices[1].seed must be a whole number, not string");
  EXPECT_THAT(refused(device(R"("faults":[{"variant":"a","fault":"hangs"}])")),
              HasSubstr("devices[1].faults[0].fault: 'hangs' is no fault, did you mean 'hang'?"));
  EXPECT_EQ(refused(device(R"("faults":[{"fault":"hang"}])")),
            "f.json: devices[1].faults[0].variant is missing");
  EXPECT_EQ(refused(device(R"("timing":{"gain":{"u2":"1%"}})")),
            "f.json: devices[1].timing.gain.u2 must be a number, not string");
  EXPECT_EQ(refused(device(R"("timing":{"step_at_s":[1,true]})")),
            "f.json: devices[1].timing.step_at_s[1] must be a number, not boolean");
  EXPECT_THAT(refused(device(R"("timing":{"heavy_tail":1.5})")),
              HasSubstr("timing.heavy_tail is 1.5: must be from 0 to 1"));
  EXPECT_THAT(refused(device(R"("timing":{"trace_ms":{"*":[]}})")), HasSubstr("timing.trace_ms.* is empty"));
  EXPECT_THAT(refused(device(R"("timing":{"trace_ms":{"*":[0]}})")), HasSubstr("must be over 0"));
  EXPECT_THAT(refused(device(R"("timing":{"trace_ms":{"*":[1,2,3]},"trace_window":2})")),
              HasSubstr("no multiple"));
  EXPECT_THAT(refused(device(R"("languages":["cudo"])")), HasSubstr("cudo"));
  EXPECT_THAT(refused(device(R"("max_block":[1,0,1])")), HasSubstr("max_block must be three whole numbers"));
  EXPECT_THAT(refused(device(R"("max_block":[1,1])")), HasSubstr("max_block must be three whole numbers"));
}

TEST(SimOptionsFile, TheEnvironmentNamesIt) {
  const auto folder = TemporaryFolder::make("furlong-sim-test").value();
  const auto with = [&](const std::string& text) {
    EXPECT_TRUE(system_files().write_atomic(folder.path() / "sim.json", text));
    setenv("FURLONG_SIM", (folder.path() / "sim.json").c_str(), 1);
    auto driver = make_sim_driver();
    unsetenv("FURLONG_SIM");
    return driver->list();
  };
  const auto listed = with(R"({"schema":1,"devices":[{"label":"A"},{"label":"B"}]})");
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->at(1).label, "B");
  const auto wrong = with("{");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::invalid);
  EXPECT_THAT(wrong.error().text(), HasSubstr("reading $FURLONG_SIM"));
  setenv("FURLONG_SIM", (folder.path() / "absent.json").c_str(), 1);
  EXPECT_FALSE(make_sim_driver()->open(0));
  unsetenv("FURLONG_SIM");
  EXPECT_EQ(make_sim_driver()->list().value().size(), 1u);
}

}  // namespace
}  // namespace furlong::device
