#include "apps/furlong/shard_report.h"

#include <algorithm>
#include <csignal>

#include "furlong/base/json.h"
#include "furlong/base/os/process.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/shard/cost_json.h"

namespace furlong::app {
namespace {

using shard::PlanShard;
using shard::Sizing;

std::uint64_t predicted_bytes(const shard::Plan& plan, const PlanShard& shard) {
  return plan.sizing.predicted_peak_bytes(shard::known_cost(shard));
}

std::size_t unit_count(const shard::Plan& plan) {
  std::size_t units = 0;
  for (const PlanShard& shard : plan.shards) units += shard.units.size();
  return units;
}

std::string sizing_text(const Sizing& sizing) {
  std::string budget;
  if (sizing.budget_bytes != 0) budget = human_bytes(sizing.budget_bytes);
  if (sizing.budget_seconds > 0)
    budget += (budget.empty() ? "" : " and ") + duration_text(sizing.budget_seconds);
  std::string text = fmt::format("{:.3g} of {}", sizing.usable, budget.empty() ? "no budget" : budget);
  if (sizing.base_bytes != 0 || sizing.ram_per_work > 0)
    text += fmt::format("; a job takes {} + {:.4g} bytes per W + its record", human_bytes(sizing.base_bytes),
                        sizing.ram_per_work);
  if (sizing.record_cap_bytes != 0) text += "; record cap " + human_bytes(sizing.record_cap_bytes);
  return text;
}

Json sizing_json(const Sizing& sizing) {
  return Json{{"budget_bytes", sizing.budget_bytes},
              {"budget_seconds", sizing.budget_seconds},
              {"record_cap_bytes", sizing.record_cap_bytes},
              {"usable", sizing.usable},
              {"base_bytes", sizing.base_bytes},
              {"ram_per_work", sizing.ram_per_work},
              {"base_seconds", sizing.base_seconds},
              {"seconds_per_work", sizing.seconds_per_work},
              {"fitted", sizing.fitted}};
}

constexpr std::size_t kMostRows = 60;

}  // namespace

std::string shards_table(const shard::Plan& plan) {
  Table table;
  using Align = Table::Align;
  for (const auto* heading : {"shard", "units", "cost", "predicted", "seconds", "own", "cross", "foreign"})
    table.column(heading, Align::right);
  for (const PlanShard& shard : plan.shards) {
    if (table.rows() == kMostRows) break;
    table.row({std::to_string(shard.id), std::to_string(shard.units.size()),
               fmt::format("{:.4g}", shard.cost), human_bytes(predicted_bytes(plan, shard)),
               fmt::format("{:.3g}", shard.seconds), human_bytes(shard.own_bytes),
               human_bytes(shard.cross_bytes), std::to_string(shard.foreign)});
  }
  std::string text = table.text();
  if (plan.shards.size() > kMostRows)
    text += fmt::format("… and {} more (--json has all)\n", plan.shards.size() - kMostRows);
  return text;
}

std::string plan_text(const shard::PlanOutcome& outcome, const std::string& file) {
  const shard::Plan& plan = outcome.plan;
  std::string text = shards_table(plan);
  text += fmt::format("\n{}: {} shards of {} units", file, plan.shards.size(), unit_count(plan));
  if (!plan.failed.empty()) text += fmt::format(", {} units failed", plan.failed.size());
  if (plan.slice != 0) text += fmt::format("; a slice of {} units, which furlong run refuses", plan.slice);
  text += "\n";
  if (!plan.shards.empty())
    text += fmt::format("cost     {}\n", shard::cost_kind_name(plan.shards.front().cost_kind));
  if (outcome.order.plain_cross_bytes != 0 || outcome.order.sharing_cross_bytes != 0)
    text += fmt::format("order    {}: {}\n", plan.order, outcome.order.text());
  if (outcome.fit) text += fmt::format("fit      {}\n", outcome.fit->text());
  text += fmt::format("cut      {}\n", sizing_text(plan.sizing));
  text += fmt::format("workers  {}\n", outcome.workers_text);
  text += fmt::format(
      "took     scan {}, loose ends {}, re-price {}, merge {}: {} segments, {} pairs merged of {} tried in "
      "{} passes{}\n",
      duration_text(outcome.scan_seconds), duration_text(outcome.fill_seconds),
      duration_text(outcome.price_seconds), duration_text(outcome.merge_seconds), outcome.segments,
      outcome.merging.merged, outcome.merging.attempts, outcome.merging.passes,
      outcome.merging.fixpoint ? "" : ", not to the end");
  if (!outcome.alone.empty()) {
    std::vector<std::string> ids;
    for (const auto id : outcome.alone) ids.push_back(std::to_string(id));
    text += fmt::format("alone    a unit over the cut each, under the budget: shards {}\n", join(ids, ", "));
  }
  return text;
}

Json plan_json(const shard::Plan& plan) {
  Json json{{"schema", 1},
            {"store", plan.store.hex()},
            {"executor", plan.executor},
            {"executor_version", plan.executor_version},
            {"order", plan.order},
            {"seed", plan.seed},
            {"slice", plan.slice},
            {"units", unit_count(plan)},
            {"failed", plan.failed.size()}};
  json["sizing"] = sizing_json(plan.sizing);
  json["shards"] = Json::array();
  for (const PlanShard& shard : plan.shards)
    json["shards"].push_back({{"shard", shard.id},
                              {"units", shard.units.size()},
                              {"cost_kind", shard::cost_kind_name(shard.cost_kind)},
                              {"cost", shard.cost},
                              {"predicted_bytes", predicted_bytes(plan, shard)},
                              {"predicted_seconds", plan.sizing.predicted_seconds(known_cost(shard))},
                              {"record_bytes", shard.record_bytes},
                              {"check_seconds", shard.seconds},
                              {"own_bytes", shard.own_bytes},
                              {"cross_bytes", shard.cross_bytes},
                              {"foreign", shard.foreign}});
  return json;
}

Json plan_json(const shard::PlanOutcome& outcome) {
  Json json = plan_json(outcome.plan);
  json["segments"] = outcome.segments;
  json["scan_seconds"] = outcome.scan_seconds;
  json["fill_seconds"] = outcome.fill_seconds;
  json["price_seconds"] = outcome.price_seconds;
  json["merge_seconds"] = outcome.merge_seconds;
  json["workers"] = outcome.workers;
  json["merge"] = Json{{"passes", outcome.merging.passes},
                       {"attempts", outcome.merging.attempts},
                       {"merged", outcome.merging.merged},
                       {"refused", outcome.merging.refused},
                       {"fixpoint", outcome.merging.fixpoint}};
  json["order_cross_bytes"] =
      Json{{"plain", outcome.order.plain_cross_bytes}, {"sharing", outcome.order.sharing_cross_bytes}};
  json["alone"] = outcome.alone;
  if (outcome.fit) {
    json["prefixes"] = Json::array();
    for (const auto& prefix : outcome.fit->prefixes)
      json["prefixes"].push_back({{"units", prefix.units},
                                  {"work", prefix.work},
                                  {"record_bytes", prefix.record_bytes},
                                  {"peak_bytes", prefix.peak_bytes}});
  }
  return json;
}

std::string run_text(const shard::Plan& plan, const shard::RunReport& report) {
  Table table;
  using Align = Table::Align;
  table.column("shard", Align::right);
  table.column("state");
  for (const auto* heading : {"units", "predicted", "peak", "seconds"}) table.column(heading, Align::right);
  table.column("receipt");
  table.column("why");
  const bool all = report.shards.size() <= kMostRows;
  for (const auto& outcome : report.shards) {
    const bool good = outcome.state == shard::ShardState::kept || outcome.state == shard::ShardState::done;
    if ((!all && good) || table.rows() == kMostRows) continue;
    const PlanShard& shard = *plan.find(outcome.shard);
    const std::uint64_t peak =
        outcome.peak_bytes != 0 ? outcome.peak_bytes : (outcome.entry ? outcome.entry->job.peak_bytes : 0);
    table.row({std::to_string(shard.id), std::string(shard_state_name(outcome.state)),
               std::to_string(shard.units.size()), human_bytes(predicted_bytes(plan, shard)),
               peak == 0 ? "" : human_bytes(peak),
               outcome.seconds > 0 ? fmt::format("{:.3g}", outcome.seconds) : "",
               outcome.entry ? outcome.entry->receipt.brief() : "", one_line(outcome.why)});
  }
  std::string text = table.rows() > 0 ? table.text() + "\n" : "";
  text += fmt::format("{} shards: {} kept, {} done, {} failed, {} pending; {}\n", report.shards.size(),
                      report.kept, report.done, report.failed, report.pending, duration_text(report.seconds));
  return text;
}

Json run_json(const shard::Plan& plan, const shard::RunReport& report) {
  Json json{{"schema", 1},
            {"plan", blake2b_256(shard::print_plan(plan)).hex()},
            {"complete", report.complete() && report.shards.size() == plan.shards.size()},
            {"stopped", report.stopped},
            {"kept", report.kept},
            {"done", report.done},
            {"failed", report.failed},
            {"pending", report.pending},
            {"seconds", report.seconds},
            {"verified_share", report.sample}};
  json["shards"] = Json::array();
  for (const auto& outcome : report.shards) {
    const PlanShard& shard = *plan.find(outcome.shard);
    Json entry{{"shard", outcome.shard},
               {"state", shard_state_name(outcome.state)},
               {"claim", outcome.claim.hex()},
               {"units", shard.units.size()},
               {"predicted_bytes", predicted_bytes(plan, shard)},
               {"predicted_seconds", plan.sizing.predicted_seconds(known_cost(shard))},
               {"seconds", outcome.seconds},
               {"peak_bytes", outcome.peak_bytes}};
    if (outcome.entry) {
      entry["receipt"] = outcome.entry->receipt.hex();
      entry["check"] = shard::cost_json(outcome.entry->check);
      entry["job"] = shard::cost_json(outcome.entry->job);
    }
    if (!outcome.why.empty()) entry["why"] = outcome.why;
    json["shards"].push_back(std::move(entry));
  }
  return json;
}

shard::PrefixJob prefix_job_process(const OpenStore& open, std::stop_token stop) {
  return [file = open.file, stop](std::span<const shard::UnitIndex> units) -> Result<shard::Cost> {
    FURLONG_TRY(const auto self, own_executable());
    ProcessRequest request;
    request.argv = {self.string(), "shard", "job", file.string()};
    Json json{{"units", Json::array()}};
    for (const auto unit : units) json["units"].push_back(unit);
    request.input = json_line(json) + "\n";
    constexpr double kNoLimit_s = 1e9;
    FURLONG_TRY(const ProcessEnd end, system_processes().run(request, kNoLimit_s, stop));
    if (end.stopped) return fail(Code::timeout, "stopped while a prefix was run");
    if (end.exit_code != 0)
      return fail(end.signal == SIGKILL ? Code::exhausted : Code::internal,
                  "the job of a prefix of {} units ended: {}: {}", units.size(), end.text(),
                  one_line(trim(end.standard_error)));
    FURLONG_TRY(const Json cost, json_parse(end.standard_output, "the job of a prefix"));
    return shard::parse_cost(cost, "the job of a prefix");
  };
}

}  // namespace furlong::app
