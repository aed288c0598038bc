#include "furlong/shard/engine/slurm/slurm.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "furlong/base/os/file.h"
#include "furlong/shard/engine/slurm/internal/array_run.h"
#include "furlong/shard/engine/slurm/internal/commands.h"

namespace furlong::shard::slurm {
namespace {

Status check(const SlurmOptions& options) {
  if (std::ranges::find(options.command, kShardArgument) == options.command.end())
    return fail(Code::invalid, "the command of a job has no argument {}, which stands for its shard",
                kShardArgument);
  if (options.plan.empty() ||
      !std::ranges::all_of(options.plan, [](unsigned char c) { return std::isalnum(c); }))
    return fail(Code::invalid, "'{}' is no name of a plan: letters and digits", options.plan);
  if (options.logs.empty()) return fail(Code::invalid, "the jobs have no folder for their logs");
  if (!options.has_receipt) return fail(Code::invalid, "nobody tells which receipts are there");
  if (!(options.memory_margin >= 1 && std::isfinite(options.memory_margin)))
    return fail(Code::invalid, "the margin of memory is {}: it must be 1 or more", options.memory_margin);
  if (!(options.time_factor >= 1 && std::isfinite(options.time_factor)))
    return fail(Code::invalid, "the factor of time is {}: it must be 1 or more", options.time_factor);
  if (!(options.time_floor_s >= 60 && std::isfinite(options.time_floor_s)))
    return fail(Code::invalid, "the least time is {} s: it must be 60 or more, as Slurm counts minutes",
                options.time_floor_s);
  if (options.cpus == 0) return fail(Code::invalid, "a job needs at least 1 CPU");
  return {};
}

class SlurmEngine : public Engine {
 public:
  SlurmEngine(SlurmOptions options, Processes& processes, Clock& clock)
      : options_(std::move(options)), commands_(processes), clock_(clock) {}
  std::string_view name() const override { return "slurm"; }
  Status run(std::span<const EngineTask> tasks, const EngineOptions& options,
             const std::function<bool(const TaskEnd&)>& ended) override;

 private:
  SlurmOptions options_;
  Commands commands_;
  Clock& clock_;
};

Status SlurmEngine::run(std::span<const EngineTask> tasks, const EngineOptions& options,
                        const std::function<bool(const TaskEnd&)>& ended) {
  FURLONG_CHECK(check(options_));
  FURLONG_CHECK(commands_.present());
  std::error_code error;
  options_.logs = std::filesystem::absolute(options_.logs, error);
  if (error) return fail(Code::invalid, "{}: {}", options_.logs.string(), error.message());
  // Two processes that both submit again what was lost would have it at work twice.
  const auto lock = FileLock::acquire(options_.logs / "lock", 1);
  if (!lock && lock.error().code() == Code::timeout)
    return fail(Code::denied, "another furlong has the jobs of this plan in hand ({} is locked): wait for it",
                (options_.logs / "lock").string());
  if (!lock) return lock.error();
  return ArrayRun(options_, commands_, clock_, tasks, options, ended).run();
}

}  // namespace

std::unique_ptr<Engine> make_engine(SlurmOptions options, Processes& processes, Clock& clock) {
  return std::make_unique<SlurmEngine>(std::move(options), processes, clock);
}

}  // namespace furlong::shard::slurm
