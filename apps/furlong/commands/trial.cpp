#include "furlong/race/trial.h"

#include <cstdio>
#include <iostream>
#include <string>

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"

namespace furlong::app {
namespace {

Result<race::TrialSubject> open_subject(const device::Registry& registry, const std::string& program_json,
                                        const std::string& address) {
  FURLONG_TRY(const Json json, json_parse(program_json, "trial program"));
  FURLONG_TRY(const auto request, program_from_json(json));
  race::TrialSubject subject;
  FURLONG_TRY(subject.device, open_device(registry, address));
  FURLONG_TRY(const auto program, program::open_program(request.request));
  FURLONG_TRY(auto instance, program::Instance::make(program, request.language, request.problem,
                                                     device_facts(subject.device->facts())));
  subject.instance = std::make_shared<const program::Instance>(std::move(instance));
  return subject;
}

std::optional<std::string> read_line() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

Status write_line(std::string_view line) {
  print_out(line);
  print_out("\n");
  if (std::fflush(stdout) != 0) return fail(Code::unavailable, "the race that started this trial is gone");
  return {};
}

/// The trial process of a race: it says which variant it is at, the race that started it watches and kills
/// what hangs.
Result<int> run(const Arguments&) {
  device::Registry registry;
  add_backends(registry);
  race::TrialServer server;
  server.read_line = read_line;
  server.write_line = write_line;
  server.open = [&](const std::string& program_json, const std::string& address) {
    return open_subject(registry, program_json, address);
  };
  FURLONG_CHECK(race::serve_trial(server));
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
