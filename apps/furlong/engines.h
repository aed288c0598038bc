#pragma once
// Where furlong run has its jobs carried out.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/furlong/command.h"
#include "furlong/shard/engine.h"
#include "furlong/shard/run.h"

namespace furlong::app {

/// What an engine's jobs are started with: each is `furlong run STORE PLAN --shard K` with these files.
struct EngineRequest {
  const Arguments& arguments;
  std::filesystem::path store, plan, cache, key;
  const shard::Plan& the_plan;
  const shard::RunContext& context;
  double sample = 1;
  /// Of what is worth a line while it runs; may be empty. Must outlive the engine.
  std::function<void(const std::string&)> tell;
};

/// --engine, and what each engine takes besides.
std::vector<OptionSpec> engine_options();
/// Jobs at work at once where --jobs does not say: 1 here, 0 (as many as it gives) on Slurm.
std::int64_t default_jobs(const Arguments& arguments);
Result<std::unique_ptr<shard::Engine>> make_engine(const EngineRequest& request);

}  // namespace furlong::app
