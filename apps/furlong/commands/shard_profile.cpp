#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/text.h"
#include "furlong/shard/make_profile.h"
#include "furlong/shard/sweep.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Status write_failed(const shard::Profile& profile, const shard::Store& store, const fs::path& out) {
  const fs::path file = shard::beside_plan(out, "failed");
  if (profile.failed.empty()) return system_files().remove(file);
  FURLONG_TRY(const std::string csv, shard::failed_csv(profile.failed, store));
  FURLONG_CHECK(system_files().write_atomic(file, csv));
  print_err(
      fmt::format("furlong shard profile: {} units failed: {}\n", profile.failed.size(), file.string()));
  return {};
}

Result<int> run(const Arguments& arguments) {
  if (!arguments.given("--out")) return fail(Code::invalid, "shard profile: --out FILE is missing");
  const fs::path out = arguments.value("--out");
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  shard::ProfileRequest request;
  FURLONG_TRY(request.fail_fast, fail_fast(arguments));
  FURLONG_TRY(const std::int64_t workers, arguments.integer("--workers", 1, 1, 1024));
  request.workers = static_cast<unsigned>(workers);
  FURLONG_TRY(const std::int64_t units, arguments.integer("--units", 0, 1, shard::kJoin));
  request.limit_units = arguments.given("--units") ? static_cast<std::uint32_t>(units) : 0;
  FURLONG_TRY(request.record_cap_bytes, bytes_option(arguments, "--record-cap", 1));
  request.isolated = !arguments.flag("--running");
  request.seconds = arguments.flag("--seconds");
  request.journal = arguments.value("--journal", out.string() + ".journal");
  request.stop = stop_on_interrupt();
  StepLine line(!arguments.flag("--quiet"));
  request.progress = line.progress();
  auto outcome = shard::make_profile(open.store, *open.executor, request);
  line.clear();
  if (request.stop.stop_requested()) {
    print_err(fmt::format("furlong shard profile: stopped; {} has what was found: the same command goes on\n",
                          request.journal.string()));
    return 128 + interrupt_signal();
  }
  if (!outcome) return Error(std::move(outcome).error());
  FURLONG_CHECK(write_failed(outcome->profile, *open.store, out));
  if (!outcome->complete) {
    const auto& first = outcome->profile.failed.front();
    return fail(Code::mismatch, "unit '{}' failed: {}; mend it, or go on without it (--no-fail-fast)",
                one_line(outcome->profile.names[first.unit]), one_line(first.why));
  }
  FURLONG_CHECK(shard::write_profile(system_files(), out, outcome->profile));
  FURLONG_CHECK(system_files().remove(request.journal));
  print_out(fmt::format("{}: {} of {} units measured, {} failed; counters: {}\n", out.string(),
                        outcome->measured, outcome->profile.units(), outcome->profile.failed.size(),
                        join(outcome->profile.features, ", ")));
  return exit_ok;
}

Result<shard::Profile> open_profile(const fs::path& file) {
  return as_input(shard::read_profile(system_files(), file));
}

Result<int> run_top(const Arguments& arguments) {
  FURLONG_TRY(const shard::Profile profile, open_profile(arguments.positionals[0]));
  const std::string feature = arguments.value("--by", "work");
  FURLONG_TRY(const std::int64_t count, arguments.integer("--top", 20, 1, 1'000'000));
  FURLONG_TRY(const auto units, shard::top(profile, feature, static_cast<std::size_t>(count)));
  print_out(arguments.flag("--json") ? shard::top_json(units, feature) : shard::top_text(units, feature));
  return exit_ok;
}

Result<int> run_sweep(const Arguments& arguments) {
  FURLONG_TRY(const shard::Profile profile, open_profile(arguments.positionals[0]));
  shard::SweepRequest request;
  request.roots.assign(arguments.positionals.begin() + 1, arguments.positionals.end());
  FURLONG_TRY(request.sizing.budget_bytes, bytes_option(arguments, "--max-ram", kGiB));
  FURLONG_TRY(request.model, model_option(arguments, request.sizing, shard::WorkSource::counters));
  FURLONG_TRY(const std::int64_t hot, arguments.integer("--hot", 10, 0, 100'000));
  FURLONG_TRY(const std::int64_t picks, arguments.integer("--picks", 5, 0, 100'000));
  request.hot = static_cast<std::size_t>(hot);
  request.picks = static_cast<std::size_t>(picks);
  request.stop = stop_on_interrupt();
  FURLONG_TRY(const auto sweep, shard::sweep(profile, request));
  print_out(arguments.flag("--json") ? shard::sweep_json(sweep) : shard::sweep_text(sweep));
  return exit_ok;
}

PositionalSpec profile_positional() {
  return {.name = "PROFILE", .help = "A file of furlong shard profile (.fprof)."};
}

}  // namespace

CommandSpec shard_profile_command() {
  std::vector<OptionSpec> options{
      {.name = "--out", .value_name = "FILE", .help = "The profile to write.", .complete = "file"},
      {.name = "--running",
       .value_name = "",
       .help = "Units one after another in growing records, and what each adds; else each in a record of its "
               "own."},
      {.name = "--seconds", .value_name = "", .help = "Wall seconds too; no two runs agree on them."},
      {.name = "--units", .value_name = "N", .help = "The first N units alone; the others stay unknown."},
      {.name = "--record-cap",
       .value_name = "BYTES",
       .help = "Most bytes of a record; a unit over it fails."},
      {.name = "--workers", .value_name = "N", .help = "Threads. They change no byte. Default 1."},
      {.name = "--journal",
       .value_name = "FILE",
       .help = "What was found out so far; an interrupted profile goes on from it. Default: "
               "FILE.journal, removed at the end.",
       .complete = "file"},
      {.name = "--quiet", .value_name = "", .help = "No progress line."}};
  for (auto& option : fail_fast_options()) options.push_back(option);
  return {.name = "shard profile",
          .summary = "Execute every unit once and write down what it costs and consults.",
          .description =
              "A profile feeds plans without execution (shard plan --profile), models (shard fit), "
              "leaderboards (shard top) and replays (shard store replay).",
          .positionals = {{.name = "STORE", .help = "A file of furlong shard store."}},
          .options = options,
          .examples = {{"furlong shard profile set.store --out set.fprof --workers 4", ""}},
          .run = run};
}

CommandSpec shard_top_command() {
  return {.name = "shard top",
          .summary = "The heaviest units of a profile, by any counter.",
          .positionals = {profile_positional()},
          .options = {{.name = "--by",
                       .value_name = "C",
                       .help = "A counter of the profile, work, record_bytes, seconds or item_bytes. Default "
                               "work."},
                      {.name = "--top", .value_name = "N", .help = "How many. Default 20."},
                      {.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong shard top set.fprof --by steps --top 10", ""}},
          .run = run_top};
}

CommandSpec shard_sweep_command() {
  return {.name = "shard sweep",
          .summary = "What it takes to have named units with all that they rest on.",
          .description =
              "For each root the cost of its closure and whether it fits; the cheapest root of "
              "each hot unit; roots that together cover most work. Without roots: those that no "
              "other unit refers to.",
          .positionals = {profile_positional(),
                          {.name = "ROOT", .help = "Names of units.", .required = false, .many = true}},
          .options = {{.name = "--max-ram", .value_name = "G", .help = "Budget of one job."},
                      {.name = "--model",
                       .value_name = "FILE",
                       .help = "A model of furlong shard fit.",
                       .complete = "file"},
                      {.name = "--hot", .value_name = "N", .help = "Hot units looked at. Default 10."},
                      {.name = "--picks", .value_name = "N", .help = "Diverse roots picked. Default 5."},
                      {.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong shard sweep set.fprof pnt fta --max-ram 64M --model set.model.json", ""}},
          .run = run_sweep};
}

}  // namespace furlong::app
