#include <atomic>
#include <filesystem>
#include <thread>

#include "bench/card/sections.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/race/internal/entrant.h"

namespace furlong::bench {
namespace {

constexpr std::int64_t kEpoch = 1;

struct Compiled {
  int variants = 0, from_cache = 0;
  double wall_ms = 0;
};

Result<Compiled> compile_catalogue(device::Device& device, const program::Instance& instance,
                                   std::string_view variants, std::size_t threads) {
  FURLONG_TRY(const auto points, instance.select(variants));
  std::vector<device::CompileRequest> requests;
  for (const lattice::Point& point : points) {
    FURLONG_TRY(const program::VariantPlan plan, instance.plan(point));
    requests.push_back(race::compile_request(instance, plan, 0));
  }
  std::atomic<std::size_t> next = 0;
  std::atomic<int> cached = 0;
  std::mutex mutex;
  Status failed;
  const double before = system_clock().now_ms();
  const auto work = [&] {
    for (std::size_t mine = next++; mine < requests.size(); mine = next++) {
      const auto module = device.compile(requests[mine]);
      if (module) {
        cached += (*module)->facts().from_cache;
        continue;
      }
      const std::lock_guard lock(mutex);
      if (failed) failed = Error(module.error()).with(requests[mine].name);
    }
  };
  {
    std::vector<std::jthread> crew;
    for (std::size_t i = 0; i < threads; ++i) crew.emplace_back(work);
  }
  FURLONG_CHECK(failed);
  return Compiled{static_cast<int>(requests.size()), cached, system_clock().now_ms() - before};
}

/// One fresh process of this program that compiles the catalogue; its metrics.
Result<Json> fresh_process(const Bench& bench, const std::filesystem::path& cache,
                           const std::filesystem::path& result, int threads) {
  FURLONG_TRY(const auto own, own_executable());
  ProcessRequest request{
      .argv = {own.string(), "--section", "compile-once", "--device", bench.option("device"), "--threads",
               std::to_string(threads), "--variants", bench.option("variants"), "--compile-mib",
               bench.option("compile-mib"), "--json", result.string()},
      .environment = {{"FURLONG_CACHE_DIR", cache.string()},
                      {"POCL_CACHE_DIR", (cache / "pocl").string()},
                      {"CUDA_CACHE_PATH", (cache / "driver").string()}}};
  if (bench.smoke()) request.argv.emplace_back("--smoke");
  FURLONG_TRY(const ProcessEnd end, system_processes().run(request, 300));
  if (end.exit_code != 0)
    return fail(Code::internal, "compiling in a fresh process: {}: {}", end.text(), end.standard_error);
  FURLONG_TRY(const std::string text, system_files().read(result));
  return json_parse(text, result.string());
}

}  // namespace

Status compile_once(Bench& bench, Stage& stage) {
  FURLONG_TRY(const double threads, number_option(bench, "threads"));
  FURLONG_TRY(const double mib, number_option(bench, "compile-mib"));
  FURLONG_TRY(const auto instance, stage.lottery(kEpoch, 128, 0, static_cast<std::int64_t>(mib)));
  FURLONG_TRY(const Compiled compiled,
              compile_catalogue(stage.device(), instance, bench.option("variants"),
                                std::max<std::size_t>(1, static_cast<std::size_t>(threads))));
  bench.metric("variants", compiled.variants, Better::higher);
  bench.metric("from_cache", compiled.from_cache, Better::higher);
  bench.metric("wall_ms", compiled.wall_ms, Better::lower);
  return {};
}

Status compile_section(Bench& bench, Stage& stage) {
  FURLONG_TRY(const auto folder, TemporaryFolder::make("furlong-bench-compile"));
  struct Case {
    const char* name;
    const char* cache;
    int threads;
  };
  // The last finds what the one before it compiled.
  const Case cases[] = {
      {"compile_ms_1_thread", "one", 1}, {"compile_ms_4_threads", "four", 4}, {"compile_ms_warm", "four", 4}};
  double variants = 0;
  for (const Case& c : cases) {
    FURLONG_TRY(const Json json,
                fresh_process(bench, folder.path() / c.cache, folder.path() / "result.json", c.threads));
    const Json& metrics = json["metrics"];
    variants = metrics["variants"].get<double>();
    bench.row({c.name,
               {{"variants", variants},
                {"from_cache", metrics["from_cache"].get<double>()},
                {"wall_ms", metrics["wall_ms"].get<double>()}},
               "compiling the lottery's catalogue in a fresh process"});
    bench.metric(c.name, metrics["wall_ms"].get<double>(), Better::lower, {.relative = 0.1});
    say(fmt::format("{}: {:.0f} variants, {:.0f} of them from the cache: {:.0f} ms", c.name, variants,
                    metrics["from_cache"].get<double>(), metrics["wall_ms"].get<double>()));
    if (std::string_view(c.name) == "compile_ms_warm" && stage.on_card())
      bench.at_least("variants of a warm catalogue from the cache", metrics["from_cache"].get<double>(),
                     variants);
  }
  return {};
}

}  // namespace furlong::bench
