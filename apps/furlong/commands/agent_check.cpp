#include <unistd.h>

#include "apps/furlong/agent_session.h"
#include "apps/furlong/commands.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/manifest/trust.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

/// One line per thing that was looked at; a fault does not end the look.
class Report {
 public:
  void good(const std::string& what, const std::string& found) { line(what, found); }
  void bad(const std::string& what, const std::string& found) {
    ++faults_;
    line(what, "FAULT: " + found);
  }
  int faults() const { return faults_; }

 private:
  static void line(const std::string& what, const std::string& found) {
    print_out(fmt::format("{:<10} {}\n", what, without_controls(found)));
  }
  int faults_ = 0;
};

/// Where the data folder would be made, or is: without making it.
void check_data(const fs::path& data, Report& report) {
  std::error_code none;
  fs::path there = data;
  while (!fs::exists(there, none) && there.has_parent_path() && there != there.parent_path())
    there = there.parent_path();
  if (!fs::is_directory(there, none) || access(there.c_str(), W_OK | X_OK) != 0)
    return report.bad("data", fmt::format("{} cannot be written ({})", data.string(), there.string()));
  const auto runs = fleet::agent_runs(data);
  const char* state = there == data ? "" : " (will be made)";
  if (runs && *runs) state = " (an agent works here now)";
  report.good("data", data.string() + state);
}

void check_program(const char* what, const std::string& program, Report& report) {
  std::vector<std::string> places{program};
  if (program.find('/') == std::string::npos) {
    places.clear();
    const char* path = std::getenv("PATH");
    for (const std::string& folder : split(path == nullptr ? "" : path, ':'))
      places.push_back((fs::path(folder) / program).string());
  }
  for (const std::string& place : places)
    if (access(place.c_str(), X_OK) == 0 && !fs::is_directory(place)) return report.good(what, place);
  report.bad(what, fmt::format("'{}' is no program that can be run", program));
}

void check_devices(const fleet::AgentConfig& config, Report& report) {
  const auto there = fleet::list_devices(system_processes(), config.furlong);
  if (!there) return report.bad("devices", there.error().text());
  const auto chosen = fleet::choose_devices(config, *there);
  if (!chosen) return report.bad("devices", chosen.error().text());
  for (const auto& device : *chosen) {
    report.good("device", fmt::format("{} {} (slot {})", device.address, device.label, device.slot));
    report.good("worker", join(fleet::worker_command(config, device), " "));
  }
}

void check_schedule(const fleet::ScheduleConfig& schedule, Report& report) {
  if (schedule.kind == fleet::ScheduleConfig::Kind::command) {
    report.good("schedule", fmt::format("by the command `{}`, lead {} units", join(schedule.command, " "),
                                        schedule.lead));
    return check_program("schedule", schedule.command.front(), report);
  }
  report.good("schedule", fmt::format("by the clock: epochs of {} s, prepared {} s ahead", schedule.epoch_s,
                                      schedule.lead));
}

void check_file(const char* what, const fs::path& file, Report& report) {
  if (file.empty()) return;
  const auto text = system_files().read(file, 1u << 20);
  if (!text) return report.bad(what, text.error().text());
  report.good(what, file.string());
}

/// As the agent told it last.
bool is_enrolled(const fleet::AgentConfig& config) {
  const fs::path file = fleet::agent_status_file(config.data);
  const auto text = system_files().read(file, 16u << 20);
  if (!text) return false;
  const auto status = fleet::parse_agent_status(*text, file.string());
  return status && status->hub_url == config.hub->url && status->hub.enrolled &&
         status->hub.state != "denied";
}

void check_hub(const fleet::AgentConfig& config, Report& report) {
  if (!config.hub) return report.good("hub", "none: race records stay in the data folder");
  report.good("hub", config.hub->url);
  check_file("ca_file", config.hub->ca_file, report);
  // It is used once: a machine that is enrolled does not need it, and its owner may have removed it.
  if (!config.hub->enrol_token_file.empty() && is_enrolled(config) &&
      !system_files().exists(config.hub->enrol_token_file))
    report.good("token", "is gone, and not needed: this machine is enrolled");
  else
    check_file("token", config.hub->enrol_token_file, report);
  if (const auto http = fleet::open_curl(); !http) report.bad("hub", http.error().text());
  const auto key = system_files().read(config.data / "machine.key", 4096);
  if (key)
    report.good("key", (config.data / "machine.key").string());
  else if (key.error().code() == Code::unavailable)
    report.good("key", "will be made at the first start");
  else
    report.bad("key", key.error().text());
}

void check_manifest(const fleet::AgentConfig& config, Report& report) {
  if (!config.manifest) return report.good("manifest", "none is fetched: there is no [manifest]");
  const auto text = system_files().read(config.manifest->root, 1u << 20);
  if (!text) return report.bad("manifest", text.error().text());
  const auto envelope = fleet::parse_envelope(*text, config.manifest->root.string());
  if (!envelope) return report.bad("manifest", envelope.error().text());
  const auto root = fleet::open_pinned_root(*envelope);
  if (!root) return report.bad("manifest", config.manifest->root.string() + ": " + root.error().text());
  report.good("manifest",
              fmt::format("channel {}, root {} of {}{}", config.manifest->channel, root->document.version,
                          root->document.product, config.manifest->canary ? ", a canary" : ""));
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const fleet::AgentConfig config, read_agent_config(arguments));
  Report report;
  check_data(config.data, report);
  check_program("furlong", config.furlong.string(), report);
  check_devices(config, report);
  check_schedule(config.schedule, report);
  check_hub(config, report);
  check_manifest(config, report);
  if (!config.finds_command.empty()) check_program("finds", config.finds_command.front(), report);
  if (report.faults() == 0) return exit_ok;
  print_err(fmt::format("furlong: {}: {} {}\n", arguments.value("--config"), report.faults(),
                        report.faults() == 1 ? "fault" : "faults"));
  return exit_usage;
}

}  // namespace

CommandSpec agent_check_command() {
  return {.name = "agent check",
          .summary =
              "Read the agent's configuration, look whether all that it names is there, and print what would "
              "run.",
          .description =
              "Changes nothing and starts no worker. Exit code 0: it would run; 2: there is a fault, which "
              "is named.",
          .positionals = {},
          .options = {agent_config_option()},
          .examples = {{"furlong agent check --config agent.toml", ""}},
          .run = run};
}

}  // namespace furlong::app
