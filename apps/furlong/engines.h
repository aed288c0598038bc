#pragma once
// Where furlong run has its jobs carried out.

#include <filesystem>
#include <memory>
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
};

/// --engine, and what each engine takes besides.
std::vector<OptionSpec> engine_options();
Result<std::unique_ptr<shard::Engine>> make_engine(const EngineRequest& request);

}  // namespace furlong::app
