#pragma once
// What the agent's commands share: the configuration with its defaults, the hub's client, the log on standard
// error.

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "apps/furlong/command.h"
#include "furlong/base/log.h"
#include "furlong/fleet/agent/agent.h"
#include "furlong/fleet/agent/config.h"
#include "furlong/fleet/http.h"

namespace furlong::app {

/// --config FILE.
OptionSpec agent_config_option();
/// The configuration of that file. An absent `furlong` is this program; relative paths in it are relative to
/// the file's folder. `invalid` when the option or the file is missing.
Result<fleet::AgentConfig> read_agent_config(const Arguments& arguments);

/// "12:00:01 info: text" on standard error, one line at a time.
void print_log(LogLevel level, std::string_view text);

/// What the agent works with on this machine; `http` may be nullptr.
fleet::AgentSurroundings agent_surroundings(fleet::HttpClient* http);

}  // namespace furlong::app
