#pragma once
// What the commands of sharding show: tables for people, the same figures as JSON; and jobs in processes of
// their own.

#include <string>

#include "apps/furlong/shard_session.h"
#include "furlong/base/json_fwd.h"
#include "furlong/shard/make_plan.h"
#include "furlong/shard/run.h"

namespace furlong::app {

std::string plan_text(const shard::PlanOutcome& outcome, const std::string& file);
Json plan_json(const shard::PlanOutcome& outcome);
/// Of a plan read from a file.
Json plan_json(const shard::Plan& plan);
/// The shards of a plan, a row each.
std::string shards_table(const shard::Plan& plan);

std::string run_text(const shard::Plan& plan, const shard::RunReport& report);
Json run_json(const shard::Plan& plan, const shard::RunReport& report);

/// A job in a process of its own (`furlong shard job`, hidden), so that its peak is its own.
shard::PrefixJob prefix_job_process(const OpenStore& open, std::stop_token stop);

}  // namespace furlong::app
