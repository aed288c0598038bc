#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/table.h"

namespace furlong::app {
namespace {

Result<int> run_list(const Arguments& arguments) {
  FURLONG_TRY(auto quarantine, open_quarantine());
  FURLONG_TRY(const auto entries, quarantine.list());
  if (arguments.flag("--json")) {
    Json list = Json::array();
    for (const auto& entry : entries)
      list.push_back(Json{{"program", entry.program},
                          {"variant", entry.variant},
                          {"device", entry.device_label},
                          {"silicon", entry.key.silicon},
                          {"driver", entry.key.driver},
                          {"source", entry.key.source},
                          {"why", entry.why},
                          {"when", entry.when}});
    print_out(json_pretty(Json{{"schema", 1}, {"quarantine", list}}));
    return exit_ok;
  }
  if (entries.empty()) {
    print_out("nothing is quarantined\n");
    return exit_ok;
  }
  Table table;
  for (const char* heading : {"program", "variant", "device", "driver", "source", "when", "why"})
    table.column(heading);
  for (const auto& entry : entries)
    table.row({entry.program, entry.variant, entry.device_label, entry.key.driver,
               entry.key.source.substr(0, 16), entry.when, entry.why});
  print_out(table.text());
  return exit_ok;
}

Result<int> run_clear(const Arguments& arguments) {
  if (arguments.positionals.empty() && !arguments.flag("--all"))
    return fail(Code::invalid, "quarantine clear takes a program, variant or source hash to clear, or --all");
  FURLONG_TRY(auto quarantine, open_quarantine());
  FURLONG_TRY(const int count,
              quarantine.clear(arguments.positionals.empty() ? "" : arguments.positionals[0]));
  print_out(fmt::format("cleared {} {}\n", count, count == 1 ? "entry" : "entries"));
  return exit_ok;
}

}  // namespace

CommandSpec quarantine_list_command() {
  return {.name = "quarantine list",
          .summary = "List the variants that hung, trapped or failed, and are not tried again on that card.",
          .description =
              "An entry holds for one card (silicon), driver and source. It lapses by itself when one of "
              "them changes.",
          .positionals = {},
          .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong quarantine list", ""}},
          .run = run_list};
}

CommandSpec quarantine_clear_command() {
  return {.name = "quarantine clear",
          .summary = "Forget quarantined variants, so that the next race tries them again.",
          .description = "",
          .positionals = {{.name = "WHAT",
                           .help = "Program, variant, or the start of a source hash.",
                           .required = false,
                           .complete = ""}},
          .options = {{.name = "--all", .value_name = "", .help = "Everything."}},
          .examples = {{"furlong quarantine clear u8", ""}, {"furlong quarantine clear --all", ""}},
          .run = run_clear};
}

}  // namespace furlong::app
