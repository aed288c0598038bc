#include "furlong/campaign/internal/execute.h"

#include <algorithm>
#include <utility>

#include "furlong/base/text.h"

namespace furlong::campaign {
namespace {

/// How an Error of a race is the unit's.
Error judged(const Error& error, const Ready& ready) {
  switch (error.code()) {
    case Code::timeout:  // the stop, else a launch that hung
      if (ready.context.stop.stop_requested()) return error;
      [[fallthrough]];
    case Code::invalid:
    case Code::incompatible:
    case Code::denied:
      return fail(Code::mismatch, "{}", error.text());
    default:
      return error;
  }
}

/// Of a record with this unit alone; what the check alone and the whole race tell alike.
shard::Cost check_cost(const Ready& ready, const race::Outcome& outcome) {
  shard::Cost cost;
  const double check_s = 1e-3 * (outcome.base_compile_ms + outcome.base_gate_ms + outcome.base_launch_ms);
  const double budget_s = ready.options.budget_s;
  cost.work = check_s;
  // The race ends earlier where it is decided earlier; a budget is for what it may take.
  cost.seconds = check_s + budget_s;
  cost.record_bytes = outcome.buffer_bytes;
  cost.features = {{"races", 1},
                   {"variants", static_cast<double>(ready.points.size())},
                   {"check_seconds", check_s},
                   {"race_budget_seconds", budget_s},
                   {"base_compile_seconds", 1e-3 * outcome.base_compile_ms},
                   {"base_gate_seconds", 1e-3 * outcome.base_gate_ms},
                   {"base_launch_seconds", 1e-3 * outcome.base_launch_ms},
                   {"device_bytes", static_cast<double>(outcome.buffer_bytes)}};
  return cost;
}

Result<race::Outcome> race_with(const Ready& ready, Leftover& leftover) {
  race::Context context = ready.context;
  const std::string device = context.device->facts().address();
  const bool shares =
      !ready.dataset.empty() && leftover.dataset == ready.dataset && leftover.device == device;
  if (!shares) leftover.drop();
  if (!ready.dataset.empty()) context.kept = &leftover.kept;
  auto outcome = race::run(*ready.instance, ready.points, ready.options, context);
  if (!outcome && shares && outcome.error().code() == Code::exhausted) {
    // There is no room for the buffers of two races beside the dataset.
    leftover.drop();
    context = ready.context;
    context.kept = &leftover.kept;
    outcome = race::run(*ready.instance, ready.points, ready.options, context);
  }
  if (outcome && !ready.dataset.empty()) {
    leftover.device = device;
    leftover.dataset = ready.dataset;
    leftover.kept.modules.clear();
  } else {
    leftover.drop();
  }
  return outcome;
}

}  // namespace

shard::Cost join_costs(const shard::Cost& record, const shard::Cost& unit) {
  constexpr const char* kDeviceBytes = "device_bytes";
  shard::Cost cost = shard::join_in_turn(record, unit);
  const auto bytes = [](const shard::Cost& of) {
    const auto found = of.features.find(kDeviceBytes);
    return found == of.features.end() ? 0.0 : found->second;
  };
  if (unit.features.contains(kDeviceBytes))
    cost.features[kDeviceBytes] = std::max(bytes(record), bytes(unit));
  return cost;
}

Result<shard::Cost> check_unit(const shard::Unit& unit, shard::ItemSource& items, Stage& stage) {
  FURLONG_TRY(const auto ready, stage.prepare(unit, items));
  if (!ready) return shard::Cost{};
  const auto outcome = race::check(*ready->instance, ready->points, 1, ready->options, ready->context);
  if (!outcome) return judged(outcome.error(), *ready);
  return check_cost(*ready, *outcome);
}

Result<UnitRun> race_unit(const shard::Unit& unit, shard::ItemSource& items, Stage& stage,
                          Leftover& leftover) {
  UnitRun run;
  run.unit = unit.key;
  run.name = unit.name;
  FURLONG_TRY(const auto ready, stage.prepare(unit, items));
  if (!ready) return run;
  run.raced = true;
  const std::int64_t begin_ns = system_clock().now_ns();
  const auto outcome = race_with(*ready, leftover);
  if (!outcome) return judged(outcome.error(), *ready);
  if (!outcome->variants[0].rate)
    return fail(Code::mismatch,
                "nothing could be timed in its budget of {:g} s ({}): give it more (budget_s) and make the "
                "store anew",
                ready->options.budget_s, outcome->sentence);
  run.check = run.job = check_cost(*ready, *outcome);
  run.job.seconds = static_cast<double>(system_clock().now_ns() - begin_ns) * 1e-9;
  run.job.features["race_seconds"] = 1e-3 * outcome->total_ms;
  run.job.features["heats"] = static_cast<double>(outcome->heats.size());
  run.item = ready->item;
  run.record = race::make_record(*ready->instance, *outcome);
  run.sentence = outcome->sentence;
  run.reference = outcome->reference;
  return run;
}

}  // namespace furlong::campaign
