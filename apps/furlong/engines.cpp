#include "apps/furlong/engines.h"

#include <csignal>
#include <map>
#include <utility>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/shard/engine/local/local.h"
#include "furlong/shard/engine/slurm/slurm.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

/// furlong run STORE PLAN --shard `shard`, with absolute paths.
Result<std::vector<std::string>> job_argv(const EngineRequest& request, const std::string& shard) {
  FURLONG_TRY(const auto self, own_executable());
  return std::vector<std::string>{self.string(),
                                  "run",
                                  fs::absolute(request.store).string(),
                                  fs::absolute(request.plan).string(),
                                  "--shard",
                                  shard,
                                  "--cache",
                                  fs::absolute(request.cache).string(),
                                  "--key",
                                  fs::absolute(request.key).string(),
                                  "--verify",
                                  fmt::format("{}", request.sample),
                                  "--seed",
                                  std::to_string(request.context.seed),
                                  "--quiet"};
}

// What the error of a job's process says of it.
Error job_error(const ProcessEnd& end) {
  constexpr std::string_view prefix = "furlong: ";
  std::string_view said = trim(end.standard_error);
  const std::size_t line = said.find_last_of('\n');
  if (line != said.npos) said = said.substr(line + 1);
  if (said.starts_with(prefix)) said.remove_prefix(prefix.size());
  if (end.signal == SIGKILL)
    return fail(Code::exhausted,
                "its process was killed (signal 9): by somebody, or since memory ran out, and then splitting "
                "it (furlong shard rebudget) or fewer jobs at once help");
  if (end.signal != 0 || said.empty()) return fail(Code::internal, "its process ended: {}", end.text());
  return fail(Code::mismatch, "{}", one_line(said));
}

Result<std::unique_ptr<shard::Engine>> make_local(const EngineRequest& request) {
  FURLONG_TRY(const auto argv, job_argv(request, ""));
  return shard::local::make_engine([argv](const shard::EngineTask& task, std::stop_token stop) {
    shard::TaskEnd told;
    ProcessRequest process;
    process.argv = argv;
    process.argv[5] = std::to_string(task.shard);
    // A job ends its own processes when it is asked to end; killed at once, it would leave that to a guard.
    process.grace_s = 5;
    constexpr double kNoLimit_s = 1e9;
    const auto end = system_processes().run(process, kNoLimit_s, stop);
    if (!end) {
      told.error = end.error();
      return told;
    }
    const bool well = end->signal == 0 && end->exit_code == 0;  // also one that was done when it was stopped
    if (!well) told.error = end->stopped ? fail(Code::timeout, "stopped") : job_error(*end);
    return told;
  });
}

bool on_slurm(const Arguments& arguments) { return arguments.value("--engine", "local") == "slurm"; }

/// The plan's file and the cache name the jobs: jobs of another cache leave their receipts elsewhere.
std::string plan_in_queue(const EngineRequest& request) {
  const std::string text = shard::print_plan(request.the_plan) + fs::absolute(request.cache).string();
  return blake2b_256(text).brief();
}

Result<std::unique_ptr<shard::Engine>> make_slurm(const EngineRequest& request) {
  shard::slurm::SlurmOptions options;
  FURLONG_TRY(options.command, job_argv(request, "{}"));
  FURLONG_TRY(const std::int64_t resubmit, request.arguments.integer("--resubmit", options.resubmit, 0, 100));
  options.resubmit = static_cast<unsigned>(resubmit);
  options.plan = plan_in_queue(request);
  fs::path logs = request.plan;
  logs.replace_extension(".slurm");
  options.logs = request.arguments.value("--logs", logs.string());
  options.sbatch_arguments = request.arguments.values("--sbatch");
  options.tell = request.tell;
  std::map<shard::ShardId, Digest> claims;
  for (const shard::PlanShard& one : request.the_plan.shards) {
    FURLONG_TRY(claims[one.id], shard::claim_digest(request.context, one));
  }
  // The job has verified its receipt before it wrote the entry.
  options.has_receipt = [claims = std::move(claims), &cache = request.context.cache](shard::ShardId shard) {
    const auto entry = cache.find(claims.at(shard));
    return entry && entry->has_value();
  };
  return shard::slurm::make_engine(std::move(options));
}

}  // namespace

std::int64_t default_jobs(const Arguments& arguments) { return on_slurm(arguments) ? 0 : 1; }

std::vector<OptionSpec> engine_options() {
  return {
      {.name = "--engine",
       .value_name = "E",
       .help = "Where jobs run: local, on this machine (default), or slurm, as job arrays.",
       .choices = {"local", "slurm"}},
      {.name = "--resubmit",
       .value_name = "N",
       .help = "slurm: how often a shard whose job was lost is submitted again. Default 2."},
      {.name = "--logs",
       .value_name = "DIR",
       .help = "slurm: folder of the jobs' logs, which all nodes share. Default: PLAN.slurm.",
       .complete = "folder"},
      {.name = "--sbatch",
       .value_name = "ARG",
       .help = "slurm: one more argument for sbatch (--sbatch=--partition=long). May be given several times.",
       .repeatable = true}};
}

Result<std::unique_ptr<shard::Engine>> make_engine(const EngineRequest& request) {
  if (on_slurm(request.arguments)) return make_slurm(request);
  for (const char* option : {"--resubmit", "--logs", "--sbatch"})
    if (request.arguments.given(option))
      return fail(Code::invalid, "{} is for --engine slurm: give both or neither", option);
  return make_local(request);
}

}  // namespace furlong::app
