#include <cstdio>
#include <iostream>
#include <string>

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/race/trial.h"

namespace furlong::app {
namespace {

/// The trial process of a race: reads one request line, runs the gates of unknown variants, says before and after each
/// which one it is at. The race that started it watches, and kills what hangs.
Result<int> run(const Arguments&) {
  race::TrialHost host;
  device::Registry registry;
  add_backends(registry);
  host.open = [&](const std::string& program_json) -> Result<race::TrialSetup> {
    FURLONG_TRY(const Json json, json_parse(program_json, "trial program"));
    FURLONG_TRY(const auto request, program_from_json(json));
    FURLONG_TRY(const std::string address, json_string(json, "device", "trial program"));
    race::TrialSetup setup;
    FURLONG_TRY(setup.device, open_device(registry, address));
    FURLONG_TRY(const auto program, program::open_program(request.request));
    if (program->check.reference == program::ReferenceKind::host) {
      FURLONG_TRY(setup.host, registry.open("host:0"));
    }
    FURLONG_TRY(auto instance, program::Instance::make(program, request.language, request.problem,
                                                       device_facts(setup.device->facts())));
    setup.instance = std::make_unique<program::Instance>(std::move(instance));
    return setup;
  };
  host.read_line = []() -> std::optional<std::string> {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  };
  host.write_line = [](std::string_view line) {
    print_out(line);
    print_out("\n");
    std::fflush(stdout);
  };
  FURLONG_CHECK(race::serve_trial(host));
  return exit_ok;
}

}  // namespace

CommandSpec trial_command() {
  return {.name = "trial",
          .summary = "The trial process of a race (started by it; reads a request from standard input).",
          .hidden = true,
          .run = run};
}

}  // namespace furlong::app
