#include <csignal>

#include "apps/furlong/commands.h"
#include "apps/furlong/engines.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

// Of the memory that is left, what jobs may be predicted to take together.
constexpr double kMemoryShare = 0.9;

struct Setup {
  OpenStore open;
  shard::Plan plan;
  fs::path plan_file;
  SigningKey signing;
  std::optional<shard::ShardId> only;
  double sample = 1;
  std::uint64_t seed = 1;
};

Result<Setup> set_up(const Arguments& arguments) {
  Setup setup;
  setup.plan_file = arguments.positionals[1];
  FURLONG_CHECK(distinct_files({{"the store", arguments.positionals[0]},
                                {"the plan", arguments.positionals[1]},
                                {"--out", arguments.value("--out")},
                                {"--json", arguments.value("--json")},
                                {"--key", arguments.value("--key")}}));
  FURLONG_TRY(setup.open, open_store(arguments.positionals[0]));
  FURLONG_TRY(setup.plan, open_plan(setup.plan_file));
  FURLONG_TRY(setup.only, shard_option(arguments, setup.plan));
  FURLONG_TRY(setup.sample, arguments.number("--verify", 1, 0.0001, 1));
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  setup.seed = static_cast<std::uint64_t>(seed);
  FURLONG_TRY(setup.signing, signing_key(arguments));
  return setup;
}

fs::path default_combined(const fs::path& plan) {
  fs::path file = plan;
  if (file.extension() == ".fsp") file.replace_extension();
  file += ".receipt.json";
  return file;
}

/// The one shard that --shard names, in this process.
Result<int> run_one(const Arguments& arguments, const Setup& setup, const shard::RunContext& context) {
  const auto& shard = *setup.plan.find(*setup.only);
  const auto stopped = [&] {
    print_err(fmt::format("furlong run: shard {} was stopped; nothing of it is kept\n", shard.id));
    return 128 + interrupt_signal();
  };
  std::string why;
  std::optional<shard::ReceiptEntry> kept;
  {
    const Status gate = shard::check_gate(context, &shard);
    auto looked = gate ? shard::settled(context, shard, &why)
                       : Result<std::optional<shard::ReceiptEntry>>(gate.error());
    if (!looked && context.stop.stop_requested()) return stopped();
    if (!looked) return Error(std::move(looked).error());
    kept = *std::move(looked);
  }
  if (!why.empty()) print_err(fmt::format("furlong run: shard {} runs anew: {}\n", shard.id, one_line(why)));
  shard::RunReport report;
  shard::ShardOutcome outcome;
  outcome.shard = shard.id;
  if (kept) {
    outcome.state = shard::ShardState::kept;
    outcome.entry = kept;
    report.kept = 1;
  } else if (arguments.flag("--dry-run")) {
    report.pending = 1;
  } else {
    auto job = shard::run_shard(context, shard, setup.signing.key);
    if (context.stop.stop_requested() && !job) return stopped();
    if (!job) return Error(std::move(job).error()).with(fmt::format("shard {}", shard.id));
    outcome.state = shard::ShardState::done;
    outcome.seconds = job->job.seconds;
    outcome.peak_bytes = job->job.peak_bytes;
    outcome.entry = *std::move(job);
    report.done = 1;
  }
  if (outcome.entry) outcome.claim = outcome.entry->claim;
  report.shards.push_back(std::move(outcome));
  if (arguments.given("--json"))
    FURLONG_CHECK(write_json(arguments.value("--json"), run_json(setup.plan, report)));
  if (arguments.value("--json") != "-") print_out(run_text(setup.plan, report));
  return report.complete() ? exit_ok : exit_failed;
}

Result<int> finish(const Arguments& arguments, const Setup& setup, const shard::RunReport& report) {
  if (arguments.given("--json"))
    FURLONG_CHECK(write_json(arguments.value("--json"), run_json(setup.plan, report)));
  const bool table = arguments.value("--json") != "-";
  if (table) print_out(run_text(setup.plan, report));
  if (report.stopped) {
    print_err("furlong run: stopped; what was finished is kept: the same command goes on\n");
    return 128 + interrupt_signal();
  }
  if (!report.complete()) {
    if (table && !arguments.flag("--dry-run"))
      print_out("verdict: not complete; the same command goes on with what is missing\n");
    return exit_failed;
  }
  FURLONG_TRY(const auto combined, shard::combine(setup.plan, report, setup.signing.key));
  const fs::path file = arguments.value("--out", default_combined(setup.plan_file).string());
  if (!arguments.flag("--dry-run"))
    FURLONG_CHECK(system_files().write_atomic(file, shard::print_combined(combined)));
  std::size_t units = 0;
  for (const auto& shard : setup.plan.shards) units += shard.units.size();
  if (table)
    print_out(fmt::format(
        "verdict: complete: a disjoint cover of {} units, every receipt {} and bound; "
        "combined receipt {}{}\n",
        units,
        report.sample < 1 ? fmt::format("verified ({}% of the rows)", 100 * report.sample) : "verified",
        combined.root.brief(), arguments.flag("--dry-run") ? "" : " in " + file.string()));
  return exit_ok;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const Setup setup, set_up(arguments));
  FURLONG_TRY(const bool stop_at_failure, fail_fast(arguments));
  FURLONG_TRY(const std::int64_t jobs, arguments.integer("--jobs", default_jobs(arguments), 1, 4096));
  FURLONG_TRY(
      const std::uint64_t memory,
      bytes_option(arguments, "--memory", kGiB,
                   static_cast<std::uint64_t>(kMemoryShare * static_cast<double>(available_memory_bytes()))));
  const shard::ReceiptCache cache(receipts_folder(arguments));
  const std::stop_token stop = stop_on_interrupt();
  const shard::RunContext context{setup.open.store, *setup.open.executor, setup.plan, cache,
                                  setup.sample,     setup.seed,           stop};
  if (setup.only) return run_one(arguments, setup, context);
  StepLine line(!arguments.flag("--quiet"));
  EngineRequest engine_request{arguments,      setup.open.file,    setup.plan_file,
                               cache.folder(), setup.signing.file, setup.plan,
                               context,        setup.sample,       {}};
  if (!arguments.flag("--quiet")) {
    engine_request.tell = [&line](const std::string& text) {
      line.clear();
      print_err("furlong run: " + one_line(text) + "\n");
    };
  }
  FURLONG_TRY(const auto engine, make_engine(engine_request));
  shard::RunRequest request;
  request.engine.memory_bytes = memory;
  request.engine.jobs = static_cast<unsigned>(jobs);
  request.engine.stop = stop;
  request.engine.progress = line.progress();
  request.fail_fast = stop_at_failure;
  request.dry_run = arguments.flag("--dry-run");
  // Two runs of one plan would do everything twice, and commands write over each other's outputs.
  std::optional<FileLock> lock;
  if (!request.dry_run) {
    const fs::path file = cache.folder() / "locks" / blake2b_256(shard::print_plan(setup.plan)).brief();
    auto held = FileLock::acquire(file, 0.2);
    if (!held && held.error().code() == Code::timeout)
      return fail(Code::denied,
                  "another furlong run of this plan is at work with the receipts in {}: wait for it",
                  cache.folder().string());
    if (!held) return Error(std::move(held).error());
    lock = *std::move(held);
  }
  auto report = shard::run_plan(context, *engine, request);
  line.clear();
  if (!report) return Error(std::move(report).error());
  return finish(arguments, setup, *report);
}

}  // namespace

CommandSpec run_command() {
  std::vector<OptionSpec> options{
      {.name = "--jobs",
       .value_name = "N",
       .help = "Jobs at work at once, as memory admits. Default 1; on Slurm as many as it gives."},
      {.name = "--memory",
       .value_name = "G",
       .help =
           "Memory that jobs may be predicted to take together: GiB, or with a unit. Default: 90% of what "
           "is free. Not on Slurm, which admits by the memory of its nodes."},
      {.name = "--shard", .value_name = "K", .help = "This shard alone, in this process."},
      {.name = "--cache",
       .value_name = "DIR",
       .help = "Folder of receipts. Default: receipts/ in the cache folder.",
       .complete = "folder"},
      {.name = "--out",
       .value_name = "FILE",
       .help = "The combined receipt of a complete run. Default: PLAN.receipt.json.",
       .complete = "file"},
      {.name = "--key",
       .value_name = "FILE",
       .help = "Secret key that signs receipts. Default: signing-key in the configuration folder, made when "
               "there is none.",
       .complete = "file"},
      {.name = "--verify",
       .value_name = "SHARE",
       .help = "Share of a receipt's rows that verifying looks at, where the executor can. Default 1."},
      {.name = "--seed", .value_name = "N", .help = "Seed of that sample. Default 1."},
      {.name = "--dry-run",
       .value_name = "",
       .help = "Say what is settled and what is pending; run nothing."},
      {.name = "--json",
       .value_name = "FILE",
       .help = "Write the report as JSON; - for standard output, in place of the table.",
       .complete = "file"},
      {.name = "--quiet", .value_name = "", .help = "No progress line."}};
  for (auto& option : engine_options()) options.push_back(option);
  for (auto& option : fail_fast_options()) options.push_back(option);
  return {
      .name = "run",
      .summary = "Carry a plan out: jobs with receipts that are verified and bound, and one verdict.",
      .description =
          "The plan must cover the store, each unit in exactly one shard. Jobs begin heaviest first, each "
          "in a process of its own. A receipt counts once it verifies and is of the claim rebuilt from "
          "the store; what is in the cache is verified again and not run again, so that the same command "
          "goes on after a crash, and plans that share a shard share its receipt.\n"
          "Exit 0: complete; 2: bad usage or input, or a plan that does not cover the store; 3: a job "
          "failed, or something is pending.",
      .positionals = {{.name = "STORE", .help = "A file of furlong shard store."},
                      {.name = "PLAN", .help = "A plan of it (.fsp)."}},
      .options = options,
      .examples = {{"furlong run set.store set.fsp --jobs 4", ""},
                   {"furlong run set.store set.fsp --shard 3", ""},
                   {"furlong run set.store set.fsp --engine slurm --sbatch=--partition=long", ""},
                   {"furlong run set.store set.fsp --dry-run --json -", ""}},
      .run = run};
}

}  // namespace furlong::app
