#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/interop/header.h"
#include "furlong/interop/race_tuning.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  if (!arguments.given("--header") && !arguments.given("--json") && !arguments.given("--tuning"))
    return fail(Code::invalid, "export: say what to write: --header FILE, --json FILE or --tuning FILE");
  std::vector<interop::Choice> choices;
  std::vector<std::pair<std::string, Json>> documents;
  for (const std::string& file : arguments.positionals) {
    FURLONG_TRY(const std::string text, as_input(system_files().read(file)));
    FURLONG_TRY(Json document, json_parse(text, file, {.max_bytes = 1u << 30}));
    FURLONG_TRY(const auto some, interop::choices_from_race(document, file));
    choices.insert(choices.end(), some.begin(), some.end());
    documents.emplace_back(file, std::move(document));
  }
  const auto write = [](const std::string& file, const std::string& text) -> Status {
    if (file == "-") {
      print_out(text);
      return {};
    }
    FURLONG_CHECK(system_files().write_atomic(file, text));
    print_out(file + "\n");
    return {};
  };
  if (arguments.given("--header")) {
    FURLONG_TRY(const std::string header, interop::choices_header(choices));
    FURLONG_CHECK(write(arguments.value("--header"), header));
  }
  if (arguments.given("--json"))
    FURLONG_CHECK(write(arguments.value("--json"), json_pretty(interop::choices_json(choices))));
  if (arguments.given("--tuning")) {
    FURLONG_TRY(const record::Tuning tuning, interop::tuning_from_races(documents));
    FURLONG_CHECK(write(arguments.value("--tuning"), record::print(tuning)));
  }
  return exit_ok;
}

}  // namespace

CommandSpec export_command() {
  return {.name = "export",
          .summary =
              "Take the choices of races home: a C header with the defines per card and size, JSON, or a "
              "tuning file.",
          .description =
              "Reads files that `furlong race --json` wrote, from any number of cards and sizes. A header is "
              "of one program; a tuning "
              "file, from which furlong::select() chooses at run time, may be of several.",
          .positionals = {{.name = "RACE", .help = "A file of furlong race --json.", .many = true}},
          .options = {{.name = "--header",
                       .value_name = "FILE",
                       .help = "Write a C header; - for standard output.",
                       .complete = "file"},
                      {.name = "--json",
                       .value_name = "FILE",
                       .help = "Write JSON; - for standard output.",
                       .complete = "file"},
                      {.name = "--tuning",
                       .value_name = "FILE",
                       .help = "Write a tuning file; - for standard output.",
                       .complete = "file"}},
          .examples = {{"furlong race my_kernel.toml --sizes n=1024,1048576 --json race.json", ""},
                       {"furlong export race.json --header my_kernel_choices.h", ""},
                       {"furlong export race.json other_card.json --tuning tuning.json", ""}},
          .run = run};
}

}  // namespace furlong::app
