#include "furlong/shard/what_if.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "furlong/base/json.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::shard {
namespace {

struct Lengths {
  std::string unit;
  std::vector<double> values;
};

bool all_above_zero(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

Lengths lengths(const Plan& plan) {
  const Sizing& sizing = plan.sizing;
  std::vector<double> seconds, costs, units;
  bool known = true;  // the costs, all of one kind
  for (const PlanShard& shard : plan.shards) {
    Cost cost;
    cost.work = shard.cost_kind == CostKind::command_seconds ? 0 : shard.cost;
    cost.seconds = shard.seconds;
    const bool told = sizing.seconds_per_work > 0 ? cost.work > 0 : cost.seconds > 0;
    seconds.push_back(told ? sizing.predicted_seconds(cost) : 0);
    costs.push_back(shard.cost);
    units.push_back(static_cast<double>(shard.units.size()));
    known = known && shard.cost_kind != CostKind::unknown && shard.cost_kind == plan.shards.front().cost_kind;
  }
  if (all_above_zero(seconds)) return {"s", seconds};
  if (!known || !all_above_zero(costs)) return {"units", units};
  const CostKind kind = plan.shards.front().cost_kind;
  return {kind == CostKind::command_seconds ? "s" : kind == CostKind::work ? "W" : "profile units", costs};
}

RunnerTime schedule(std::vector<double> lengths, std::uint32_t runners) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(runners, lengths.size()); ++i) free_at.push(0);
  RunnerTime time{.runners = runners};
  for (const double length : lengths) {
    const double end = free_at.top() + length;
    free_at.pop();
    free_at.push(end);
    time.wall = std::max(time.wall, end);
  }
  const double total = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  if (!lengths.empty()) time.bound = std::max(lengths.front(), total / runners);
  if (time.wall > 0) time.efficiency = total / (time.wall * runners);
  return time;
}

}  // namespace

Result<WhatIf> what_if(const Plan& plan, std::span<const std::uint32_t> runners) {
  WhatIf report;
  report.shards = static_cast<std::uint32_t>(plan.shards.size());
  report.failed = static_cast<std::uint32_t>(plan.failed.size());
  for (const PlanShard& shard : plan.shards) {
    report.units += shard.units.size();
    report.own_bytes += shard.own_bytes;
    report.cross_bytes += shard.cross_bytes;
    if (!plan.sizing.fitted) continue;
    Cost cost;
    cost.work = shard.cost_kind == CostKind::command_seconds ? 0 : shard.cost;
    cost.record_bytes = shard.record_bytes;
    report.largest_bytes =
        std::max(report.largest_bytes, static_cast<std::uint64_t>(plan.sizing.predicted_bytes(cost)));
  }
  const Lengths found = lengths(plan);
  report.unit = found.unit;
  report.total = std::accumulate(found.values.begin(), found.values.end(), 0.0);
  for (const double value : found.values) report.longest = std::max(report.longest, value);
  if (report.total > 0) report.imbalance = report.longest / (report.total / report.shards);
  for (const std::uint32_t count : runners) {
    if (count == 0) return fail(Code::invalid, "a plan needs at least one runner, not 0");
    report.times.push_back(schedule(found.values, count));
  }
  return report;
}

std::string what_if_text(const WhatIf& report) {
  std::string text = fmt::format(
      "{} shards of {} units, {:.4g} {} in all; the longest is {:.4g} {}, {:.2f} times the mean\n"
      "own bytes {}, cross bytes {}",
      report.shards, report.units, report.total, report.unit, report.longest, report.unit, report.imbalance,
      human_bytes(report.own_bytes), human_bytes(report.cross_bytes));
  if (report.largest_bytes != 0)
    text += fmt::format(", largest predicted peak {}", human_bytes(report.largest_bytes));
  if (report.failed != 0) text += fmt::format("; {} units failed and are in no shard", report.failed);
  text += '\n';
  Table table;
  table.column("runners", Table::Align::right);
  table.column(fmt::format("wall {}", report.unit), Table::Align::right);
  table.column("at the least", Table::Align::right);
  table.column("used", Table::Align::right);
  for (const RunnerTime& time : report.times)
    table.row({std::to_string(time.runners), fmt::format("{:.4g}", time.wall),
               fmt::format("{:.4g}", time.bound), fmt::format("{:.0f}%", 100 * time.efficiency)});
  return report.times.empty() ? text : text + table.text();
}

std::string what_if_json(const WhatIf& report) {
  Json json;
  json["shards"] = report.shards;
  json["units"] = report.units;
  json["failed"] = report.failed;
  json["unit"] = report.unit;
  json["total"] = report.total;
  json["longest"] = report.longest;
  json["imbalance"] = report.imbalance;
  json["own_bytes"] = report.own_bytes;
  json["cross_bytes"] = report.cross_bytes;
  json["largest_bytes"] = report.largest_bytes;
  json["times"] = Json::array();
  for (const RunnerTime& time : report.times)
    json["times"].push_back({{"runners", time.runners},
                             {"wall", time.wall},
                             {"bound", time.bound},
                             {"efficiency", time.efficiency}});
  return json_pretty(json);
}

}  // namespace furlong::shard
