#include <unistd.h>

#include <array>


#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/text.h"
#include "furlong/shard/profile_plan.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// What the jobs of a plan took, as their receipts' entries have it.
Result<std::vector<shard::FitRun>> runs_of(const OpenStore& open, const shard::Plan& plan,
                                           const shard::ReceiptCache& cache, const std::string& prefix) {
  const shard::RunContext context{open.store, *open.executor, plan, cache, 1, 1, {}};
  std::vector<shard::FitRun> runs;
  for (const auto& shard : plan.shards) {
    FURLONG_TRY(const Digest claim, shard::claim_digest(context, shard));
    const auto entry = cache.find(claim);
    if (!entry || !*entry) continue;
    shard::FitRun run;
    run.name = fmt::format("{}shard {}", prefix, shard.id);
    run.check = (*entry)->check;
    for (const auto& [name, value] : run.check.features) run.counters[name] = value;
    run.job_seconds = (*entry)->job.seconds;
    run.job_peak_bytes = (*entry)->job.peak_bytes;
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<int> run(const Arguments& arguments) {
  if (!arguments.given("--out")) return fail(Code::invalid, "shard fit: --out FILE is missing");
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  const shard::ReceiptCache cache(receipts_folder(arguments));
  std::optional<shard::Profile> profile;
  if (arguments.given("--profile")) {
    FURLONG_TRY(profile,
                as_input(shard::read_profile(system_files(), fs::path(arguments.value("--profile")))));
  }
  std::vector<shard::FitRun> runs;
  std::size_t shards = 0;
  const std::vector<std::string> files(arguments.positionals.begin() + 1, arguments.positionals.end());
  for (const std::string& file : files) {
    FURLONG_TRY(const shard::Plan plan, open_plan(file));
    if (plan.store != open.store->digest())
      return fail(Code::mismatch, "{}: the plan is for the store {}, not {}", file, plan.store.brief(),
                  open.store->digest().brief());
    FURLONG_TRY(auto some, runs_of(open, plan, cache, ""));
    if (profile) FURLONG_CHECK(shard::use_profile(some, plan, *profile));
    if (files.size() > 1)
      for (auto& one : some) one.name = file + " " + one.name;
    runs.insert(runs.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    shards += plan.shards.size();
  }
  if (runs.size() < 3)
    return fail(Code::invalid,
                "{} of {} shards have a receipt in {}: a fit takes three at least; run the plan first "
                "(furlong run), or name its --cache",
                runs.size(), shards, cache.folder().string());
  shard::FitOptions options;
  FURLONG_TRY(options.held_out, arguments.number("--held-out", options.held_out, 0, 0.9));
  FURLONG_TRY(options.margin, arguments.number("--margin", options.margin, 0, 0.5));
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  options.seed = static_cast<std::uint64_t>(seed);
  options.provenance.store = open.store->digest().hex();
  options.provenance.executor = open.executor->name();
  options.provenance.executor_version = open.executor->version();
  options.provenance.machine = arguments.value("--machine", machine_name());
  options.provenance.date = iso_time(system_clock().wall_us()).substr(0, 10);
  options.provenance.note = arguments.value("--note");
  FURLONG_TRY(const shard::Model model, shard::fit_model(runs, options));
  FURLONG_CHECK(shard::write_model(system_files(), arguments.value("--out"), model));
  print_out(arguments.flag("--json") ? shard::print_model(model) : shard::model_text(model));
  return exit_ok;
}

}  // namespace

CommandSpec shard_fit_command() {
  return {
      .name = "shard fit",
      .summary = "Fit a model of what jobs take to the runs of your own plans.",
      .description =
          "Takes what the jobs of the plans took from their receipts. Stage 1 goes from counters to W, stage "
          "2 "
          "from W to memory and seconds. A part of the runs is held out, and the figures say how well those "
          "are foretold. The model's usable share is 1 less the worst under-prediction less a margin. "
          "With it, furlong shard plan --model measures no prefixes.",
      .positionals = {{.name = "STORE", .help = "A file of furlong shard store."},
                      {.name = "PLAN", .help = "Plans of it that were run (.fsp).", .many = true}},
      .options =
          {{.name = "--out", .value_name = "FILE", .help = "The model to write.", .complete = "file"},
           {.name = "--cache",
            .value_name = "DIR",
            .help = "Folder of receipts. Default: receipts/ in the cache folder.",
            .complete = "folder"},
           {.name = "--profile",
            .value_name = "FILE",
            .help = "Counters from this profile, as plans from it will have them.",
            .complete = "file"},
           {.name = "--held-out",
            .value_name = "X",
            .help = "Share of the runs that the fit does not see. Default 0.25."},
           {.name = "--margin",
            .value_name = "X",
            .help = "What the usable share keeps besides the worst under-prediction. Default 0.05."},
           {.name = "--seed", .value_name = "N", .help = "Seed of which runs are held out. Default 1."},
           {.name = "--machine", .value_name = "M", .help = "For the provenance. Default: this host's name."},
           {.name = "--note", .value_name = "TEXT", .help = "For the provenance."},
           {.name = "--json", .value_name = "", .help = "Print the model as JSON."}},
      .examples = {{"furlong shard fit set.store set.fsp --out set.model.json", ""}},
      .run = run};
}

}  // namespace furlong::app
