#include <iostream>
#include <iterator>

#include "apps/furlong/commands.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/shard/cost_json.h"
#include "furlong/shard/make_plan.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  FURLONG_TRY(const Json json, json_parse(text, "the request", {.max_bytes = 1u << 30}));
  std::vector<shard::UnitIndex> units;
  try {
    units = json.at("units").get<std::vector<shard::UnitIndex>>();
  } catch (const Json::exception& error) {
    return fail(Code::invalid, "the request: {}", error.what());
  }
  FURLONG_TRY(const shard::Cost cost,
              shard::prefix_job_here(open.store, *open.executor, stop_on_interrupt())(units));
  print_out(json_line(shard::cost_json(cost)) + "\n");
  return exit_ok;
}

}  // namespace

CommandSpec shard_job_command() {
  return {
      .name = "shard job",
      .summary =
          "A job whose receipt nobody keeps (started by furlong shard plan; its units on standard input).",
      .positionals = {{.name = "STORE", .help = "A file of furlong shard store."}},
      .hidden = true,
      .run = run};
}

}  // namespace furlong::app
