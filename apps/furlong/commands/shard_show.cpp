#include "apps/furlong/commands.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/shard/what_if.h"

namespace furlong::app {
namespace {

Result<std::vector<std::uint32_t>> runners_of(const Arguments& arguments) {
  std::vector<std::uint32_t> runners;
  for (const std::string& word : split(arguments.value("--runners", "1,2,4,8,16,32,64"), ',')) {
    const auto number = parse_integer(word);
    if (!number || *number < 1 || *number > 1'000'000)
      return fail(Code::invalid, "--runners: '{}' is no number of runners, from 1 to 1000000", word);
    runners.push_back(static_cast<std::uint32_t>(*number));
  }
  return runners;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const shard::Plan plan, open_plan(arguments.positionals[0]));
  FURLONG_TRY(const auto runners, runners_of(arguments));
  FURLONG_TRY(const shard::WhatIf report, shard::what_if(plan, runners));
  if (arguments.flag("--json")) {
    Json json = plan_json(plan);
    FURLONG_TRY(json["what_if"], json_parse(shard::what_if_json(report), "what-if"));
    print_out(json_pretty(json));
    return exit_ok;
  }
  print_out(shards_table(plan) + "\n" + shard::what_if_text(report));
  return exit_ok;
}

}  // namespace

CommandSpec shard_show_command() {
  return {
      .name = "shard show",
      .summary = "What is in a plan, and what it would mean: imbalance, cross bytes, wall time by runners.",
      .positionals = {{.name = "PLAN", .help = "A plan (.fsp)."}},
      .options = {{.name = "--runners",
                   .value_name = "P,…",
                   .help = "Numbers of runners to ask for. Default 1,2,4,8,16,32,64."},
                  {.name = "--json", .value_name = "", .help = "As JSON."}},
      .examples = {{"furlong shard show set.fsp --runners 1,8,40", ""}},
      .run = run};
}

}  // namespace furlong::app
