#include "furlong/race/internal/long_window.h"

#include <algorithm>

#include "furlong/race/internal/hold.h"

namespace furlong::race {
namespace {

constexpr double kSliceMs = 250;  // so that a stop is heard

}  // namespace

Result<LongWindow> long_window(const Context& context, const Options& options, Sampler& sampler,
                               Entrant& entrant, double seconds) {
  const WindowPlan plan = plan_window(entrant.estimate_ms, entrant.estimate_ms,
                                      std::min(kSliceMs, 1e3 * seconds), options.cache == CacheState::hot);
  const Hold hold(context, sampler.pause_counter());
  FURLONG_CHECK(sampler.lay_out(entrant));  // before the energy counter is read
  LongWindow window;
  double sum_ms = 0, count = 0;
  const double start_ms = context.clock->now_ms();
  const auto before = context.device->telemetry().energy_j;
  while (count == 0 || context.clock->now_ms() - start_ms < 1e3 * seconds) {
    if (context.stop.stop_requested()) return fail(Code::timeout, "stopped during a window");
    FURLONG_TRY(const std::vector<double> samples, sampler.window_while_held(entrant, plan));
    for (const double sample : samples) sum_ms += sample;
    count += static_cast<double>(samples.size());
    window.launches += static_cast<double>(plan.repeats) * plan.batch;
    if (options.keep_samples)
      window.samples_ms.insert(window.samples_ms.end(), samples.begin(), samples.end());
  }
  const auto after = context.device->telemetry().energy_j;
  window.elapsed_s = 1e-3 * (context.clock->now_ms() - start_ms);
  window.mean_ms = sum_ms / count;
  if (before && after) window.joules = *after - *before;
  return window;
}

}  // namespace furlong::race
