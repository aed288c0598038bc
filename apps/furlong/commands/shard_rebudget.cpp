#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/text.h"
#include "furlong/shard/rebudget.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

// The rows of the other shards are kept; where there is no such file, only the children have one.
Result<std::map<shard::ShardId, shard::Cost>> all_costs(const fs::path& plan_file,
                                                        const shard::Rebudgeted& result) {
  std::map<shard::ShardId, shard::Cost> costs;
  const fs::path file = shard::beside_plan(plan_file, "costs");
  if (system_files().exists(file)) {
    FURLONG_TRY(const std::string text, system_files().read(file));
    FURLONG_TRY(const auto rows, shard::parse_costs_csv(text, file.string()));
    for (const auto& row : rows) costs[row.shard] = row.cost;
  }
  for (const auto& [shard, cost] : result.costs) costs[shard] = cost;
  return costs;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_CHECK(distinct_files({{"the store", arguments.positionals[0]},
                                {"the plan", arguments.positionals[1]},
                                {"--json", arguments.value("--json")}}));
  FURLONG_CHECK(
      distinct_files({{"the store", arguments.positionals[0]}, {"--out", arguments.value("--out")}}));
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  const fs::path file = arguments.positionals[1];
  FURLONG_TRY(const shard::Plan plan, open_plan(file));
  FURLONG_TRY(const auto only, shard_option(arguments, plan));
  if (!only) return fail(Code::invalid, "shard rebudget: --shard K is missing");
  shard::RebudgetRequest request;
  request.shard = *only;
  FURLONG_TRY(request.budget_bytes, bytes_option(arguments, "--max-ram", kGiB));
  if (arguments.given("--max-seconds")) {
    FURLONG_TRY(request.budget_seconds, arguments.number("--max-seconds", 0, 1e-9, 1e12));
  }
  if (request.budget_bytes == 0 && request.budget_seconds == 0)
    return fail(Code::invalid,
                "shard rebudget: say what a piece may take: --max-ram G, --max-seconds S, or both");
  std::optional<shard::Profile> profile;
  if (arguments.given("--profile")) {
    FURLONG_TRY(profile,
                as_input(shard::read_profile(system_files(), fs::path(arguments.value("--profile")))));
    request.profile = &*profile;
  }
  StepLine line(!arguments.flag("--quiet"));
  request.progress = line.progress();
  request.stop = stop_on_interrupt();
  auto result = shard::rebudget(open.store, *open.executor, plan, request);
  line.clear();
  if (request.stop.stop_requested()) {
    print_err("furlong shard rebudget: stopped; the plan is as it was\n");
    return 128 + interrupt_signal();
  }
  if (!result) return Error(std::move(result).error());
  const fs::path out = arguments.value("--out", file.string());
  FURLONG_TRY(const auto costs, all_costs(file, *result));
  FURLONG_CHECK(
      system_files().write_atomic(shard::beside_plan(out, "costs"), shard::costs_csv(result->plan, costs)));
  FURLONG_CHECK(shard::write_plan(system_files(), out, result->plan));
  if (arguments.given("--json"))
    FURLONG_CHECK(write_json(arguments.value("--json"), plan_json(result->plan)));
  if (arguments.value("--json") == "-") return exit_ok;
  std::string pieces;
  for (const auto id : result->children) {
    const auto& child = *result->plan.find(id);
    pieces += fmt::format("{}{} ({} units)", pieces.empty() ? "" : ", ", id, child.units.size());
  }
  print_out(fmt::format("{}: shard {} became {}; the other {} shards, and their receipts, are as they were\n",
                        out.string(), *only, pieces, plan.shards.size() - 1));
  return exit_ok;
}

}  // namespace

CommandSpec shard_rebudget_command() {
  return {
      .name = "shard rebudget",
      .summary = "Split one shard of a plan under a smaller budget, and leave all others as they are.",
      .description =
          "The shard's units are cut in their order; the first piece keeps the shard's number, the others "
          "get new ones. No other shard changes, so their receipts stay good. Where the shard does not "
          "split, nothing is written.",
      .positionals = {{.name = "STORE", .help = "A file of furlong shard store."},
                      {.name = "PLAN", .help = "A plan of it (.fsp)."}},
      .options = {{.name = "--shard", .value_name = "K", .help = "The shard to split."},
                  {.name = "--max-ram",
                   .value_name = "G",
                   .help = "Memory that the job of a piece may take: GiB, or with a unit."},
                  {.name = "--max-seconds", .value_name = "S", .help = "Time that it may take."},
                  {.name = "--profile",
                   .value_name = "FILE",
                   .help = "Cut by what this profile recorded, in place of executing the units.",
                   .complete = "file"},
                  {.name = "--out",
                   .value_name = "OUT.fsp",
                   .help = "The plan to write. Default: the plan itself.",
                   .complete = "file"},
                  {.name = "--json",
                   .value_name = "FILE",
                   .help = "Write the new plan's figures as JSON; - for standard output.",
                   .complete = "file"},
                  {.name = "--quiet", .value_name = "", .help = "No progress line."}},
      .examples = {{"furlong shard rebudget set.store set.fsp --shard 3 --max-ram 32M", ""}},
      .run = run};
}

}  // namespace furlong::app
