#include "apps/furlong/agent_session.h"
#include "apps/furlong/commands.h"
#include "furlong/base/os/interrupt.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const fleet::AgentConfig config, read_agent_config(arguments));
  std::unique_ptr<fleet::HttpClient> http;
  if (config.hub) {
    FURLONG_TRY(http, fleet::open_curl());
  }
  const std::stop_token stop = stop_on_interrupt();
  FURLONG_TRY(const auto agent, fleet::Agent::open(config, agent_surroundings(http.get()), stop));
  print_log(LogLevel::info, fmt::format("agent: data folder {}", config.data.string()));
  FURLONG_CHECK(agent->run(stop));
  print_log(LogLevel::info, "agent: stopped");
  return exit_ok;
}

}  // namespace

CommandSpec agent_command() {
  return {
      .name = "agent",
      .summary =
          "Keep a worker on every device of this machine, on the program that is due, and its records safe.",
      .description =
          "Runs until Ctrl-C or SIGTERM. Starts a worker per device and starts it again when it ends; "
          "prepares "
          "each program ahead of its boundary and swaps at it; keeps race records and finds in the data "
          "folder "
          "and sends the records to the hub in signed batches; follows the fleet's tuning.\n"
          "It logs to standard error. Lines that begin with `worker: race` and `TUNING` are for programs.",
      .positionals = {},
      .options = {agent_config_option()},
      .examples = {{"furlong agent check --config agent.toml", "What would run, and what is wrong."},
                   {"furlong agent --config agent.toml", ""},
                   {"furlong agent status --config agent.toml", "From another terminal."},
                   {"furlong agent demo", "Without a configuration, to watch it."}},
      .run = run};
}

}  // namespace furlong::app
