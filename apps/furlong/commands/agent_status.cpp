#include "apps/furlong/agent_session.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<fs::path> data_folder(const Arguments& arguments) {
  if (arguments.given("--data") == arguments.given("--config"))
    return fail(Code::invalid, "agent status takes --config FILE or --data DIR: one of the two");
  if (arguments.given("--data")) return fs::path(arguments.value("--data"));
  FURLONG_TRY(const fleet::AgentConfig config, read_agent_config(arguments));
  return config.data;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const fs::path data, data_folder(arguments));
  FURLONG_TRY(const bool runs, fleet::agent_runs(data));
  const fs::path file = fleet::agent_status_file(data);
  const auto text = system_files().read(file, 16u << 20);
  if (!text && text.error().code() == Code::unavailable) {
    print_err(fmt::format("furlong: {}: no agent {} here\n", data.string(),
                          runs ? "has told its state yet" : "has run"));
    return exit_failed;
  }
  if (!text) return text.error();
  FURLONG_TRY(const fleet::AgentStatus status, fleet::parse_agent_status(*text, file.string()));
  if (arguments.flag("--json")) {
    print_out(*text);
  } else {
    print_out(runs ? fmt::format("agent {}, process {}, since {}; told at {}\n\n", status.version, status.pid,
                                 status.started, status.written)
                   : fmt::format("NO AGENT RUNS in {}; this was its state at {}\n\n", data.string(),
                                 status.written));
    print_out(fleet::status_text(status));
  }
  if (!runs && arguments.flag("--json"))
    print_err(fmt::format("furlong: no agent runs in {}\n", data.string()));
  return runs ? exit_ok : exit_failed;
}

}  // namespace

CommandSpec agent_status_command() {
  return {.name = "agent status",
          .summary =
              "What the agent of this machine does: per device variant, rate, last race and swap, crashes; "
              "records and hub.",
          .description =
              "Reads status.json of the data folder, which the agent writes every 2 s. Exit code 3 when no "
              "agent runs "
              "there; what is shown is then its last state, and said to be.",
          .positionals = {},
          .options = {agent_config_option(),
                      {.name = "--data",
                       .value_name = "DIR",
                       .help = "The data folder, in place of --config.",
                       .complete = "folder"},
                      {.name = "--json",
                       .value_name = "",
                       .help = "The document itself (docs/formats/agent-status.md)."}},
          .examples = {{"furlong agent status --config agent.toml", ""},
                       {"furlong agent status --data /var/lib/furlong --json", ""}},
          .run = run};
}

}  // namespace furlong::app
