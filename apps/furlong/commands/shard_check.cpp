#include <map>

#include "apps/furlong/commands.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/shard/cost_json.h"

namespace furlong::app {
namespace {

struct Checked {
  shard::ShardId shard = 0;
  std::optional<shard::Cost> cost;
  std::string why;
};

Json check_json(const std::string& name, const shard::Plan& plan, const std::vector<Checked>& all) {
  Json json{{"schema", 1}, {"name", name}, {"plan", blake2b_256(shard::print_plan(plan)).hex()}};
  json["shards"] = Json::array();
  for (const Checked& checked : all) {
    Json entry{{"shard", checked.shard}, {"ok", checked.cost.has_value()}};
    if (checked.cost) {
      entry["cost"] = shard::cost_json(*checked.cost);
      entry["predicted_bytes"] = plan.sizing.predicted_bytes(*checked.cost);
      entry["predicted_seconds"] = plan.sizing.predicted_seconds(*checked.cost);
      entry["over_budget"] = plan.sizing.over_budget(*checked.cost);
    } else {
      entry["why"] = checked.why;
    }
    json["shards"].push_back(std::move(entry));
  }
  return json;
}

std::string check_text(const shard::Plan& plan, const std::vector<Checked>& all) {
  Table table;
  using Align = Table::Align;
  table.column("shard", Align::right);
  table.column("verdict");
  for (const auto* heading : {"units", "work", "record", "job", "seconds"})
    table.column(heading, Align::right);
  for (const Checked& checked : all) {
    const auto* shard = plan.find(checked.shard);
    if (!checked.cost) {
      table.row({std::to_string(checked.shard), "failed: " + one_line(checked.why),
                 std::to_string(shard->units.size())});
      continue;
    }
    table.row({std::to_string(checked.shard),
               plan.sizing.over_budget(*checked.cost) ? "over the budget" : "ok",
               std::to_string(shard->units.size()), fmt::format("{:.4g}", checked.cost->work),
               human_bytes(checked.cost->record_bytes),
               human_bytes(plan.sizing.predicted_peak_bytes(*checked.cost)),
               fmt::format("{:.3g}", checked.cost->seconds)});
  }
  return table.text();
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  FURLONG_TRY(const shard::Plan plan, open_plan(arguments.positionals[1]));
  FURLONG_TRY(const bool stop_at_failure, fail_fast(arguments));
  FURLONG_TRY(const auto only, shard_option(arguments, plan));
  const std::stop_token stop = stop_on_interrupt();
  const shard::ReceiptCache cache(cache_folder() / "receipts");  // not used by a check
  const shard::RunContext context{open.store, *open.executor, plan, cache, 1, 1, stop};
  FURLONG_CHECK(shard::check_gate(context));
  StepLine line(!arguments.flag("--quiet"));
  std::vector<Checked> all;
  shard::ProgressState state{.step = "check", .total = only ? 1 : plan.shards.size()};
  for (const auto& shard : plan.shards) {
    if (only && shard.id != *only) continue;
    state.heaviest = fmt::format("shard {}", shard.id);
    line.show(state);
    Checked checked{shard.id, std::nullopt, ""};
    auto cost = shard::check_shard(context, shard);
    if (stop.stop_requested()) {
      line.clear();
      print_err("furlong shard check: stopped\n");
      return 128 + interrupt_signal();
    }
    if (cost)
      checked.cost = *cost;
    else
      checked.why = cost.error().text();
    all.push_back(std::move(checked));
    ++state.done;
    if (!all.back().cost && stop_at_failure) break;
  }
  line.clear();
  if (arguments.given("--json"))
    FURLONG_CHECK(write_json(arguments.value("--json"),
                             check_json(arguments.value("--json-name", "shard check"), plan, all)));
  if (arguments.value("--json") != "-") print_out(check_text(plan, all));
  const bool good = std::ranges::all_of(
      all, [&](const Checked& checked) { return checked.cost && !plan.sizing.over_budget(*checked.cost); });
  return good ? exit_ok : exit_failed;
}

}  // namespace

CommandSpec shard_check_command() {
  std::vector<OptionSpec> options{
      {.name = "--shard", .value_name = "K", .help = "This shard alone."},
      {.name = "--json",
       .value_name = "FILE",
       .help = "Write the measured costs as JSON; - for standard output, in place of the table.",
       .complete = "file"},
      {.name = "--json-name", .value_name = "N", .help = "The name that the JSON bears."},
      {.name = "--quiet", .value_name = "", .help = "No progress line."}};
  for (auto& option : fail_fast_options()) options.push_back(option);
  return {.name = "shard check",
          .summary = "Execute the prefix of a plan's shards, cold, and say what each costs.",
          .description =
              "Reading of the store is outside of the timed window. Nothing is kept.\n"
              "Exit 0: all within the budget; 2: bad usage or input, or a plan that does not cover "
              "the store; 3: a shard failed, or is over the budget.",
          .positionals = {{.name = "STORE", .help = "A file of furlong shard store."},
                          {.name = "PLAN", .help = "A plan of it (.fsp)."}},
          .options = options,
          .examples = {{"furlong shard check set.store set.fsp", ""},
                       {"furlong shard check set.store set.fsp --shard 3 --json - --json-name heaviest", ""}},
          .run = run};
}

}  // namespace furlong::app
