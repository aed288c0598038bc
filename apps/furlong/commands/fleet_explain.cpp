#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_evidence.h"
#include "furlong/base/json.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const auto options, aggregate_options(arguments));
  FURLONG_TRY(const auto open, evidence_store(arguments));
  FURLONG_TRY(const fleet::CardEvidence card, fleet::explain(open, arguments.positionals[0], options));
  if (arguments.flag("--json")) {
    Json json{{"schema", 1}};
    json.update(fleet::to_json(card));
    print_out(json_pretty(json));
  } else {
    print_out(fleet::explain_text(card, options));
  }
  return exit_ok;
}

}  // namespace

CommandSpec fleet_explain_command() {
  return {
      .name = "fleet explain",
      .summary = "Say why a card has its entry in the fleet's tuning.",
      .description =
          "Who raced what on it, how often and with which gain; by power cap, driver and day; what was set "
          "aside and why; and the choice in a sentence. Give the options that the tuning was made with.",
      .positionals = {{.name = "CARD", .help = "Key, label, alias or silicon hash.", .complete = ""}},
      .options = aggregate_option_specs(),
      .examples = {{"furlong fleet explain NVIDIA_GeForce_RTX_5090 --store sqlite:hub.sqlite", ""},
                   {"furlong fleet explain 9c1f0a5b7d3e2f46 --store sqlite:hub.sqlite --json", ""}},
      .run = run};
}

}  // namespace furlong::app
