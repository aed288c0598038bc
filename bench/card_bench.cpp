// Proves a back end on a card: the lottery against the ceiling of random loads, the race against the plain
// rule, races of equal copies and of one planted winner, compile times. bench/card/prove.sh runs it beside
// the conformance suite, compute-sanitizer and planted faults.

#include <algorithm>
#include <filesystem>

#include "bench/card/sections.h"
#include "furlong/base/json.h"
#include "furlong/base/os/file.h"

namespace furlong::bench {
namespace {

struct Section {
  const char* name;
  Status (*run)(Bench&, Stage&);
  bool usual;  ///< run when none is named
};

constexpr Section kSections[] = {
    {"launch-all", launch_all, false},  {"compile-once", compile_once, false},
    {"lottery", lottery_section, true}, {"classic", classic_section, true},
    {"copies", copies_section, true},   {"compile", compile_section, true},
};

std::vector<BenchOption> options() {
  return {
      {"device", "where; auto: cuda:0, in a smoke run host:0", "auto"},
      {"section", "lottery, classic, copies, compile, launch-all, or all", "all"},
      {"limit-s", "most seconds of a section, 0: none; what is not done by then misses a bound", "0"},
      {"details", "file for the figures of every variant", ""},
      {"variants", "variants of the lottery that are raced", "catalogue"},
      {"race-budget-s", "budget of one race", "20"},
      {"max-pause-ms", "most timed time of one race, 0: no more than the budget", "0"},
      {"sizes", "lottery: dataset sizes in MiB; 0 is the small one", "64,1024,8192"},
      {"classes", "lottery: LOADS/WIDE of each class", "32/0,32/8,32/32,64/0,64/8,64/32,128/0,128/8,128/32"},
      {"packs", "classic: packs of different seeds", "5"},
      {"classic-mib", "classic: dataset in MiB", "1024"},
      {"classic-window-s", "classic: seconds of one turn of the plain rule", "2"},
      {"copies", "copies: how many, base counted", "17"},
      {"aa-races", "copies: races of equal copies", "200"},
      {"planted-races", "copies: races with one that is 1% faster", "100"},
      {"copies-threads", "copies: threads of a launch", "524288"},
      {"compile-mib", "compile: dataset that the texts are made for, in MiB", "1024"},
      {"threads", "compile-once: threads", "4"},
      {"programs", "launch-all: program files beside the lottery",
       "examples/convolution/convolution.toml,examples/histogram/histogram.toml,"
       "examples/reduction/reduction.toml,examples/transpose/transpose.toml,bench/data/card/copies.toml"},
  };
}

/// A smoke run takes the same ways on inputs for a busy CPU: every option that was not given is made small.
std::map<std::string, std::string> smoke_options() {
  return {{"device", "host:0"},
          {"variants", "base,u2"},
          {"race-budget-s", "60"},
          {"max-pause-ms", "1000"},
          {"sizes", "0"},
          {"classes", "32/0,32/8"},
          {"packs", "1"},
          {"classic-mib", "0"},
          {"classic-window-s", "0.05"},
          {"copies", "3"},
          {"aa-races", "2"},
          {"planted-races", "2"},
          {"copies-threads", "512"},
          {"compile-mib", "0"},
          {"threads", "2"},
          {"programs", "examples/reduction/reduction.toml"}};
}

Status run(Bench& bench) {
  const std::string wanted = bench.option("section");
  const std::string address = bench.option("device") == "auto" ? "cuda:0" : bench.option("device");
  auto opened = Stage::open(address);
  if (!opened && opened.error().code() == Code::unavailable)
    return fail(Code::unavailable, "unavailable: {}. This bench needs a card (or --device D)",
                opened.error().text());
  FURLONG_TRY(const auto stage, std::move(opened));
  const device::Facts& facts = stage->device().facts();
  bench.environment("device", fmt::format("{} {} ({})", facts.address(), facts.label, facts.silicon.arch));
  bench.environment("driver", facts.driver);
  bench.environment("device_compiler", facts.compiler);
  bool found = false;
  for (const Section& section : kSections) {
    if (wanted != section.name && !(wanted == "all" && (section.usual || bench.smoke()))) continue;
    found = true;
    say(fmt::format("{} on {}", section.name, facts.address()));
    FURLONG_CHECK_DOING(section.run(bench, *stage), "{}", section.name);
  }
  if (!found) return fail(Code::invalid, "no section '{}' (see --help)", wanted);
  if (!bench.option("details").empty())
    return system_files().write_atomic(bench.option("details"), json_pretty(details()));
  return {};
}

}  // namespace
}  // namespace furlong::bench

int main(int argc, char** argv) {
  using namespace furlong::bench;
  std::vector<BenchOption> known = options();
  const bool smoke = std::any_of(argv + 1, argv + argc,
                                 [](const char* word) { return std::string_view(word) == "--smoke"; });
  if (smoke)
    for (BenchOption& option : known)
      if (const auto small = smoke_options(); small.contains(option.name))
        option.value = small.at(option.name);
  return bench_main(argc, argv, "card", run, known);
}
