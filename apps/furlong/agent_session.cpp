#include "apps/furlong/agent_session.h"

#include <random>

#include "apps/furlong/session.h"
#include "apps/furlong/version.h"
#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

/// Relative to the configuration's folder, which is where its writer stands.
void anchor(fs::path& path, const fs::path& folder) {
  if (!path.empty() && path.is_relative()) path = (folder / path).lexically_normal();
}

/// A program by a path is anchored as well; a bare name is looked for in PATH.
void anchor_program(std::vector<std::string>& command, const fs::path& folder) {
  if (command.empty() || command.front().find('/') == std::string::npos) return;
  fs::path program = command.front();
  anchor(program, folder);
  command.front() = program.string();
}

std::string_view level_word(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

}  // namespace

OptionSpec agent_config_option() {
  return {.name = "--config",
          .value_name = "FILE",
          .help = "The configuration (docs/formats/agent-config.md).",
          .complete = "file"};
}

Result<fleet::AgentConfig> read_agent_config(const Arguments& arguments) {
  if (!arguments.given("--config")) return fail(Code::invalid, "--config FILE is missing");
  const fs::path file = arguments.value("--config");
  FURLONG_TRY(const std::string text, as_input(system_files().read(file, 1u << 20)));
  FURLONG_TRY(fleet::AgentConfig config, fleet::parse_agent_config(text, file.string()));
  std::error_code error;
  const fs::path folder = fs::absolute(file, error).parent_path();
  if (error) return fail(Code::internal, "{}: {}", file.string(), error.message());
  anchor(config.data, folder);
  if (config.furlong.empty()) {
    FURLONG_TRY(config.furlong, own_executable());
  } else {
    anchor(config.furlong, folder);
  }
  config.folder = folder;
  anchor_program(config.schedule.command, folder);
  anchor_program(config.finds_command, folder);
  if (config.hub) {
    anchor(config.hub->ca_file, folder);
    anchor(config.hub->enrol_token_file, folder);
  }
  if (config.manifest) anchor(config.manifest->root, folder);
  return config;
}

void print_log(LogLevel level, std::string_view text) {
  // The day is the journal's business; the time of day is for whoever watches.
  const std::string stamp = iso_time(system_clock().wall_us());
  print_err(fmt::format("{} {}: {}\n", stamp.substr(11, 8), level_word(level), without_controls(text)));
}

fleet::AgentSurroundings agent_surroundings(fleet::HttpClient* http) {
  fleet::AgentSurroundings with{.version = version_text(),
                                .files = &system_files(),
                                .processes = &system_processes(),
                                .clock = &system_clock(),
                                .http = http};
  std::random_device chance;
  with.seed = static_cast<std::uint64_t>(chance()) << 32 | chance();
  with.say = print_log;
  with.say_plain = [](std::string_view line) { print_err(std::string(line) + "\n"); };
  return with;
}

}  // namespace furlong::app
