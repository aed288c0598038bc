#include "furlong/race/internal/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "furlong/base/os/memory.h"
#include "furlong/race/internal/hold.h"
#include "furlong/stats/centre.h"
#include "furlong/stats/heat_order.h"

namespace furlong::race {
namespace {

constexpr double kBatchUnderMs = 0.05;
constexpr double kBatchMs = 0.5;
constexpr int kFewest = 3;
constexpr int kTries = 3;
constexpr int kMostRepeats = 4096;
constexpr int kMostBatch = 4096;
constexpr std::size_t kRestoreEachWindow = 16 << 20;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Several times the last-level cache: of a card (H200: 50 MiB, the largest so far 126 MiB), of a CPU.
std::size_t flush_bytes(const device::Facts& facts) {
  if (facts.virtual_time) return 1 << 20;
  return facts.runs_on_host_cpu ? std::size_t{128} << 20 : std::size_t{512} << 20;
}

}  // namespace

WindowPlan plan_window(double estimate_ms, double base_estimate_ms, double window_ms, bool batches) {
  const double one = std::max(estimate_ms, 1e-6), base = std::max(base_estimate_ms, 1e-6);
  const bool like_base = one < 2 * base && base < 2 * one;
  const double decides = like_base ? base : one;
  WindowPlan plan;
  if (batches && decides < kBatchUnderMs)
    plan.batch = std::clamp(static_cast<int>(std::ceil(kBatchMs / decides)), 1, kMostBatch);
  const double samples = std::ceil(window_ms / (one * plan.batch));
  plan.repeats = 1 + static_cast<int>(std::clamp<double>(samples, kFewest, kMostRepeats));
  return plan;
}

double window_value(std::span<const double> samples_ms) {
  return samples_ms.empty() ? kNaN : stats::median(samples_ms);
}

Sampler::Sampler(const Context& context, const Options& options, Buffers& buffers,
                 const program::RunInputs& timed, std::size_t variants)
    : context_(context),
      options_(options),
      buffers_(buffers),
      timed_(timed),
      variants_(variants),
      inout_bytes_(Buffers::inout_bytes(buffers.program(), timed)) {}

Status Sampler::prepare() {
  if (options_.cache == CacheState::hot) return {};
  const Hold hold(context_);
  auto buffer = context_.device->allocate(flush_bytes(context_.device->facts()));
  if (!buffer) return std::move(buffer).error().with("allocating the buffer that flushes the caches");
  flush_ = *std::move(buffer);
  return {};
}

double Sampler::window_ms(const Entrant& entrant) const {
  const WindowPlan plan =
      plan_window(entrant.estimate_ms, base_estimate_ms_, options_.window_ms, flush_ == nullptr);
  return plan.repeats * plan.batch * entrant.estimate_ms;
}

Result<std::vector<double>> Sampler::window(Entrant& entrant, const WindowPlan& plan) {
  const Hold hold(context_, &paused_ms_);
  FURLONG_CHECK(lay_out(entrant));
  return window_while_held(entrant, plan);
}

/// Before there is an estimate each launch has the limit to itself. Flushing the caches goes at a gigabyte a
/// second at least.
double Sampler::hand_limit_s(const Entrant& entrant, const WindowPlan& plan) const {
  const double launches = static_cast<double>(plan.repeats) * plan.batch;
  const double flush_s = flush_ ? 1e-9 * static_cast<double>(flush_bytes(context_.device->facts())) : 0;
  if (entrant.estimate_ms <= 0) return launches * (context_.hand_limit_s + flush_s);
  return context_.hand_limit_s + launches * (10e-3 * entrant.estimate_ms + flush_s);
}

Status Sampler::lay_out(const Entrant& entrant) {
  const std::pair now{&entrant, buffers_.scratch_epoch()};
  // Whoever serves with these buffers may have done so since the device was held last.
  const bool shared = context_.acquire && context_.kept != nullptr;
  if (scratch_user_ == now && !shared) return {};
  scratch_user_ = {nullptr, 0};
  if (!entrant.timed.once.empty()) {
    const InHand hand(context_, entrant.name());
    FURLONG_CHECK(launch_all(*context_.device, entrant.timed.once));
    FURLONG_CHECK(context_.device->finish());
  }
  scratch_user_ = now;
  return {};
}

Result<std::vector<double>> Sampler::window_while_held(Entrant& entrant, const WindowPlan& plan) {
  // An accumulating kernel must not meet numbers that grew with every launch before it.
  if (inout_bytes_ > 0 && inout_bytes_ <= kRestoreEachWindow) FURLONG_CHECK(buffers_.restore(timed_));
  device::TimeRequest request;
  request.pipeline = entrant.timed.launches;
  request.batch = plan.batch;
  request.repeats = plan.repeats;
  request.flush = flush_.get();
  auto timed = [&] {
    const InHand hand(context_, Holding::variant, entrant.name(), hand_limit_s(entrant, plan));
    return context_.device->time(request);
  }();
  FURLONG_TRY(std::vector<double> samples, std::move(timed));
  if (samples.size() < 2)
    return fail(Code::internal, "the device timed {} launches of {}", samples.size(), plan.repeats);
  samples.erase(samples.begin());
  for (const double sample : samples)
    if (!std::isfinite(sample) || sample <= 0)
      return fail(Code::internal, "the device's clock says {} ms for a launch of '{}'", sample,
                  entrant.name());
  return samples;
}

/// On a card a window during which the host was descheduled is timed again, twice at most. On the host's own
/// CPU it stands: the interval carries it.
Result<std::vector<double>> Sampler::undisturbed_window(Entrant& entrant, const WindowPlan& plan,
                                                        bool& descheduled) {
  if (context_.device->facts().virtual_time) return window(entrant, plan);
  const int tries = context_.device->facts().runs_on_host_cpu ? 1 : kTries;
  for (int again = 0;; ++again) {
    const std::uint64_t switches = involuntary_switches();
    auto samples = window(entrant, plan);
    const bool disturbed = involuntary_switches() > switches;
    if (samples && disturbed && again + 1 < tries) continue;
    descheduled |= disturbed;
    return samples;
  }
}

Status Sampler::estimate(std::span<Entrant* const> entrants,
                         const std::function<Status(Entrant&, const Error&)>& failed) {
  for (Entrant* entrant : entrants) {
    if (!entrant->in()) continue;
    if (context_.stop.stop_requested()) return fail(Code::timeout, "stopped before the heats");
    auto samples = window(*entrant, {.batch = 1, .repeats = 3});
    if (!samples) {
      FURLONG_CHECK(failed(*entrant, samples.error()));
      continue;
    }
    entrant->estimate_ms = window_value(*samples);
    // A short kernel alone is mostly gaps: once more in a batch.
    const WindowPlan plan = plan_window(entrant->estimate_ms, entrant->estimate_ms, 0, flush_ == nullptr);
    if (plan.batch > 1) {
      samples = window(*entrant, {.batch = plan.batch, .repeats = 2});
      if (!samples) {
        FURLONG_CHECK(failed(*entrant, samples.error()));
        continue;
      }
      entrant->estimate_ms = window_value(*samples);
    }
    if (entrant->index == 0) base_estimate_ms_ = entrant->estimate_ms;
  }
  return {};
}

Result<Sampler::Heat> Sampler::heat(std::span<Entrant* const> entrants, std::uint64_t number) {
  std::vector<std::size_t> racing;
  for (std::size_t i = 0; i < entrants.size(); ++i)
    if (entrants[i] != nullptr) racing.push_back(i);
  Heat heat;
  HeatRecord& record = heat.record;
  record.cost_ms.assign(variants_, kNaN);
  record.base_again_ms = kNaN;
  if (!first_heat_ms_) first_heat_ms_ = context_.clock->now_ms();
  record.at_s = 1e-3 * (context_.clock->now_ms() - *first_heat_ms_);
  if (inout_bytes_ > kRestoreEachWindow) {
    const Hold hold(context_);
    FURLONG_CHECK(buffers_.restore(timed_));
  }
  const device::Telemetry before = read_telemetry(context_);
  for (const std::size_t i : stats::heat_order(racing, number, options_.seed)) {
    if (context_.stop.stop_requested()) return fail(Code::timeout, "stopped during a heat");
    Entrant& entrant = *entrants[i];
    const WindowPlan plan =
        plan_window(entrant.estimate_ms, base_estimate_ms_, options_.window_ms, flush_ == nullptr);
    auto samples = undisturbed_window(entrant, plan, record.descheduled);
    if (!samples) {
      heat.failure = Failure{&entrant, std::move(samples).error()};
      record.dropped = true;
      record.why_dropped = fmt::format("{} failed: {}", entrant.name(), heat.failure->error.text());
      return heat;
    }
    record.order.push_back(static_cast<std::uint32_t>(i));
    double& value = i == 0 && std::isfinite(record.cost_ms[0]) ? record.base_again_ms : record.cost_ms[i];
    value = window_value(*samples);
    if (options_.keep_samples) record.samples_ms.emplace_back(samples->begin(), samples->end());
  }
  record.telemetry = read_telemetry(context_);
  if (record.telemetry.throttle != before.throttle) {
    record.dropped = true;
    record.why_dropped = "the throttle state changed";
  } else if (record.descheduled && !context_.device->facts().runs_on_host_cpu) {
    record.dropped = true;
    record.why_dropped = "the host was descheduled";
  }
  return heat;
}

}  // namespace furlong::race
