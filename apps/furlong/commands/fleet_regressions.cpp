#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_evidence.h"
#include "furlong/base/json.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  fleet::RegressionOptions options;
  FURLONG_TRY(options.window_days, arguments.number("--window-days", 7, 0.001, 36500));
  FURLONG_TRY(options.until_us, until_option(arguments));
  FURLONG_TRY(options.threshold_pct, arguments.number("--threshold", 1, 0, 99));
  FURLONG_TRY(const auto open, evidence_store(arguments));
  FURLONG_TRY(const fleet::Regressions found, fleet::find_regressions(open, options));
  print_out(arguments.flag("--json") ? json_pretty(fleet::to_json(found)) : fleet::show_text(found));
  return arguments.flag("--strict") && !found.regressions.empty() ? exit_failed : exit_ok;
}

}  // namespace

CommandSpec fleet_regressions_command() {
  return {
      .name = "fleet regressions",
      .summary = "Name the variants that got slower from one window to the next.",
      .description =
          "Each machine is compared with itself, under the same power cap. Told apart: a variant alone, or "
          "base as well (then it is the driver or the card). At most one report in twenty holds a false "
          "alarm. docs/fleet-aggregation.md says how.",
      .positionals = {},
      .options = {evidence_store_option(),
                  {.name = "--window-days", .value_name = "N", .help = "Of each window. Default 7."},
                  until_option_spec(),
                  {.name = "--threshold",
                   .value_name = "P",
                   .help = "Slower by less than so many percent is none. Default 1."},
                  {.name = "--strict", .value_name = "", .help = "Exit 3 when there is any."},
                  {.name = "--json", .value_name = "", .help = "As JSON (docs/formats/hub-api.md)."}},
      .examples = {{"furlong fleet regressions --store sqlite:hub.sqlite", ""},
                   {"furlong fleet regressions --store sqlite:hub.sqlite --window-days 2 --strict",
                    "For a script."}},
      .run = run};
}

}  // namespace furlong::app
