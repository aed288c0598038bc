#include "apps/furlong/engines.h"

#include <csignal>

#include "furlong/base/json.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/shard/engine/local/local.h"

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
    return fail(
        Code::exhausted,
        "its process was killed, most likely since memory ran out: split it (furlong shard rebudget), "
        "or run fewer jobs at once");
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
    constexpr double kNoLimit_s = 1e9;
    const auto end = system_processes().run(process, kNoLimit_s, stop);
    if (!end) {
      told.error = end.error();
      return told;
    }
    if (end->stopped)
      told.error = fail(Code::timeout, "stopped");
    else if (end->signal != 0 || end->exit_code != 0)
      told.error = job_error(*end);
    return told;
  });
}

}  // namespace

std::vector<OptionSpec> engine_options() {
  return {{.name = "--engine",
           .value_name = "E",
           .help = "Where jobs run. Default local: on this machine.",
           .choices = {"local"}}};
}

Result<std::unique_ptr<shard::Engine>> make_engine(const EngineRequest& request) {
  return make_local(request);
}

}  // namespace furlong::app
