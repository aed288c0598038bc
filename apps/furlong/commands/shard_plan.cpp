#include <thread>

#include "apps/furlong/commands.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/shard/make_plan.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<std::uint32_t> limit_units() {
  const char* text = std::getenv("FURLONG_SCAN_LIMIT_UNITS");
  if (text == nullptr || *text == '\0') return 0;
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > std::numeric_limits<std::uint32_t>::max())
    return fail(Code::invalid, "FURLONG_SCAN_LIMIT_UNITS={}: it takes a number of units, from 1 on", text);
  return static_cast<std::uint32_t>(*number);
}

Result<shard::Sizing> sizing_of(const Arguments& arguments) {
  shard::Sizing sizing;
  FURLONG_TRY(sizing.budget_bytes, bytes_option(arguments, "--max-ram", kGiB));
  FURLONG_TRY(sizing.budget_seconds, arguments.number("--max-seconds", 0, 1e-9, 1e12));
  if (!arguments.given("--max-seconds")) sizing.budget_seconds = 0;
  if (sizing.budget_bytes == 0 && sizing.budget_seconds == 0)
    return fail(Code::invalid, "shard plan: say what a job may take: --max-ram G, --max-seconds S, or both");
  FURLONG_TRY(sizing.record_cap_bytes, bytes_option(arguments, "--record-cap", 1));
  FURLONG_TRY(sizing.usable, arguments.number("--usable", sizing.usable, 0.01, 1));
  return sizing;
}

Result<shard::PlanRequest> request_of(const Arguments& arguments, const OpenStore& open,
                                      const fs::path& out) {
  shard::PlanRequest request;
  FURLONG_TRY(request.sizing, sizing_of(arguments));
  FURLONG_TRY(request.fail_fast, fail_fast(arguments));
  FURLONG_TRY(request.limit_units, limit_units());
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  request.seed = static_cast<std::uint64_t>(seed);
  FURLONG_TRY(const std::int64_t workers, arguments.integer("--workers", 0, 1, 1024));
  request.workers = static_cast<unsigned>(arguments.given("--workers") ? workers : 0);
  request.cost_kind = open.executor->cost_kind();
  request.merge = !arguments.flag("--no-merge");
  const std::string order = arguments.value("--order", "auto");
  if (order == "plain") request.order = shard::OrderKind::plain;
  if (order == "sharing") request.order = shard::OrderKind::sharing;
  if (!arguments.flag("--dry-run")) request.journal = arguments.value("--journal", out.string() + ".journal");
  return request;
}

// With a failed unit named in both modes; a file of an earlier plan is not left to speak for this one.
Status write_failed(const shard::Plan& plan, const shard::Store& store, const fs::path& out) {
  const fs::path file = shard::beside_plan(out, "failed");
  if (plan.failed.empty()) return system_files().remove(file);
  FURLONG_TRY(const std::string csv, shard::failed_csv(plan.failed, store));
  FURLONG_CHECK(system_files().write_atomic(file, csv));
  print_err(fmt::format("furlong shard plan: {} units failed: {}\n", plan.failed.size(), file.string()));
  return {};
}

Result<int> run(const Arguments& arguments) {
  const bool dry = arguments.flag("--dry-run");
  if (!arguments.given("--out") && !dry) return fail(Code::invalid, "shard plan: --out OUT.fsp is missing");
  const fs::path out = arguments.value("--out", "plan.fsp");
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  FURLONG_TRY(shard::PlanRequest request, request_of(arguments, open, out));
  StepLine line(!arguments.flag("--quiet"));
  request.progress = line.progress();
  request.stop = stop_on_interrupt();
  request.prefix_job = prefix_job_process(open, request.stop);
  auto outcome = shard::make_plan(open.store, *open.executor, request);
  line.clear();
  if (request.stop.stop_requested()) {
    print_err(
        dry ? "furlong shard plan: stopped\n"
            : fmt::format("furlong shard plan: stopped; {} has what was found: the same command goes on\n",
                          request.journal.string()));
    return 128 + interrupt_signal();
  }
  if (!outcome) return Error(std::move(outcome).error());
  if (!dry) FURLONG_CHECK(write_failed(outcome->plan, *open.store, out));
  if (!outcome->complete) {
    const auto& first = outcome->plan.failed.front();
    FURLONG_TRY(const shard::Unit unit, open.store->unit(first.unit));
    return fail(Code::mismatch, "unit '{}' failed: {}; mend it, or plan without what fails (--no-fail-fast)",
                one_line(unit.name), one_line(first.why));
  }
  if (!dry) {
    FURLONG_CHECK(system_files().write_atomic(shard::beside_plan(out, "costs"),
                                              shard::costs_csv(outcome->plan, outcome->costs)));
    FURLONG_CHECK(shard::write_plan(system_files(), out, outcome->plan));
  }
  if (arguments.given("--json")) FURLONG_CHECK(write_json(arguments.value("--json"), plan_json(*outcome)));
  if (arguments.value("--json") != "-") print_out(plan_text(*outcome, dry ? "(not written)" : out.string()));
  return exit_ok;
}

}  // namespace

CommandSpec shard_plan_command() {
  std::vector<OptionSpec> options{
      {.name = "--out", .value_name = "OUT.fsp", .help = "The plan to write.", .complete = "file"},
      {.name = "--max-ram",
       .value_name = "G",
       .help = "Memory that one job may take at its peak: GiB, or with a unit, such as 512M."},
      {.name = "--max-seconds", .value_name = "S", .help = "Time that one job may take."},
      {.name = "--usable",
       .value_name = "X",
       .help = "Share of the budgets that the cut may use. Default 0.75."},
      {.name = "--record-cap",
       .value_name = "BYTES",
       .help =
           "Most bytes of a record, enforced at every charge. Default: what the base leaves of --max-ram."},
      {.name = "--order",
       .value_name = "O",
       .help =
           "Order of the units. Default auto: by sharing where that saves at least 1% of the cross bytes.",
       .choices = {"auto", "plain", "sharing"}},
      {.name = "--workers",
       .value_name = "N",
       .help = "Threads of the scan. Default: as many as memory holds records at their cap. They change no "
               "byte of the plan."},
      {.name = "--no-merge", .value_name = "", .help = "Leave the segments of the scan as they are."},
      {.name = "--seed", .value_name = "N", .help = "Seed of the order by sharing. Default 1."},
      {.name = "--journal",
       .value_name = "FILE",
       .help = "What was found out so far; an interrupted plan goes on from it. Default: OUT.fsp.journal.",
       .complete = "file"},
      {.name = "--dry-run", .value_name = "", .help = "Plan, but write nothing (no journal either)."},
      {.name = "--json",
       .value_name = "FILE",
       .help = "Write the report as JSON; - for standard output, in place of the table.",
       .complete = "file"},
      {.name = "--quiet", .value_name = "", .help = "No progress line."}};
  for (auto& option : fail_fast_options()) options.push_back(option);
  return {.name = "shard plan",
          .summary = "Cut a store into shards by measured cost.",
          .description =
              "Executes the mandatory prefix of the work, unit after unit, and cuts where the measured cost "
              "reaches the budget; then executes every shard once more, cold, and merges what fits together. "
              "Where nothing was fitted yet, three growing prefixes are run first, each in a process of its "
              "own. The same store, options and journal give the same plan.\n"
              "FURLONG_SCAN_LIMIT_UNITS=N looks at the first N units alone; such a plan is a slice, and "
              "furlong run refuses it.\n"
              "Exit 0: planned; 2: bad usage or input; 3: a unit failed (--fail-fast).",
          .positionals = {{.name = "STORE", .help = "A file of furlong shard store."}},
          .options = options,
          .examples = {{"furlong shard plan set.store --max-ram 64M --out set.fsp", ""},
                       {"furlong shard plan build.store --max-ram 4 --max-seconds 120 --out build.fsp", ""}},
          .run = run};
}

}  // namespace furlong::app
