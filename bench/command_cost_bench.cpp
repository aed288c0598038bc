// What the program itself costs: the time of `furlong --help` and the memory of a race of the 17-variant
// catalogue on the simulated device. Drives the built program as a user does.

#include <algorithm>
#include <filesystem>

#include "bench/harness.h"
#include "bench/program.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"

namespace furlong::bench {
namespace {

Result<double> median_ms(const ProcessRequest& request, int runs) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const double start = system_clock().now_ms();
    FURLONG_TRY(const ProcessEnd end, system_processes().run(request, 30));
    times.push_back(system_clock().now_ms() - start);
    if (end.exit_code != 0)
      return fail(Code::internal, "{}: {}", request.argv[0], end.text() + end.standard_error);
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

Status run(Bench& bench) {
  FURLONG_TRY(const auto furlong, program());
  FURLONG_TRY(const auto folder, TemporaryFolder::make("furlong-bench"));
  ProcessRequest help{.argv = {furlong.string(), "--help"}};
  FURLONG_TRY(const double help_ms, median_ms(help, bench.smoke() ? 5 : 51));
  // The floor that any program pays here: starting one that does nothing.
  ProcessRequest nothing{.argv = {"/bin/true"}};
  FURLONG_TRY(const double nothing_ms, median_ms(nothing, bench.smoke() ? 5 : 51));

  ProcessRequest race{
      .argv = {furlong.string(), "race", "lottery", "--device", "sim:0", "--language", "cuda", "--quiet"},
      .environment = {{"FURLONG_STATE_DIR", (folder.path() / "state").string()},
                      {"FURLONG_CACHE_DIR", (folder.path() / "cache").string()}}};
  const double start = system_clock().now_ms();
  FURLONG_TRY(const ProcessEnd end, system_processes().run(race, 300));
  const double race_ms = system_clock().now_ms() - start;
  if (end.exit_code != 0)
    return fail(Code::internal, "the race on sim: {}\n{}", end.text(), end.standard_error);

  const double peak_mib = static_cast<double>(end.peak_bytes) / (1 << 20);
  bench.metric("help_ms", help_ms, Better::lower, {.relative = 0.5, .absolute = 3});
  bench.metric("start_nothing_ms", nothing_ms, Better::lower, {.relative = 0.5, .absolute = 3});
  bench.metric("sim_race_peak_mib", peak_mib, Better::lower, {.relative = 0.05});
  bench.metric("sim_race_ms", race_ms, Better::lower, {.relative = 0.5});
  bench.at_most("peak memory of a 17-variant race on sim, MiB", peak_mib, 64);
  // No test depends on how fast the machine is: the smoke run has no bound on time.
  if (!bench.smoke()) bench.at_most("furlong --help, ms", help_ms, 50);
  return {};
}

}  // namespace
}  // namespace furlong::bench

int main(int argc, char** argv) {
  return furlong::bench::bench_main(argc, argv, "command-cost", furlong::bench::run);
}
