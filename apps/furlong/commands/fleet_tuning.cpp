#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_evidence.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/fleet/manifest/documents.h"

namespace furlong::app {
namespace {

std::string row_name(const fleet::Subject& subject) {
  return subject.program_class == "{}" ? subject.program
                                       : fmt::format("{} {}", subject.program, subject.program_class);
}

const fleet::VariantEvidence* winner_of(const fleet::RowEvidence& row) {
  for (const fleet::VariantEvidence& variant : row.variants)
    if (variant.name == row.variant) return &variant;
  return nullptr;
}

std::string table_of(const fleet::Aggregate& aggregate) {
  Table table;
  for (const char* heading : {"card", "program", "variant"}) table.column(heading);
  for (const char* heading : {"gain %", "machines", "races"}) table.column(heading, Table::Align::right);
  table.column("choice");
  table.column("candidates");
  for (const fleet::CardEvidence& card : aggregate.cards)
    for (const fleet::RowEvidence& row : card.rows) {
      if (!row.leads) continue;
      const auto* winner = winner_of(row);
      const bool raced = winner != nullptr && winner->gain_pct.samples > 0;
      table.row({card.key, row_name(row.subject), row.variant,
                 raced ? fmt::format("{:+.2f}", winner->gain_pct.median) : "-",
                 raced ? std::to_string(winner->gain_pct.machines) : "-",
                 raced ? std::to_string(winner->gain_pct.races) : "-",
                 std::string(fleet::choice_name(row.choice)), join(row.candidates, " ")});
    }
  return table.text();
}

std::string text_of(const fleet::Aggregate& aggregate) {
  std::size_t set_aside = 0, without = 0;
  for (const fleet::CardEvidence& card : aggregate.cards)
    for (const fleet::RowEvidence& row : card.rows) {
      set_aside += row.set_aside.size();
      without += row.choice == fleet::Choice::none;
    }
  std::string text =
      fmt::format("{} races from {} to {}, {} of them superseded\n", aggregate.races,
                  iso_time(aggregate.window.from_us), iso_time(aggregate.window.to_us), aggregate.superseded);
  if (aggregate.cards.empty()) return text;
  text += table_of(aggregate);
  if (without > 0) text += fmt::format("{} rows have no entry, for want of races\n", without);
  if (set_aside > 0)
    text +=
        fmt::format("{} entries were set aside; furlong fleet explain CARD says which and why\n", set_aside);
  return text;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const auto options, aggregate_options(arguments));
  FURLONG_TRY(const auto open, evidence_store(arguments));
  FURLONG_TRY(const fleet::Aggregate aggregate, fleet::aggregate(open, options));
  if (arguments.given("--write")) {
    const record::Tuning tuning = fleet::to_tuning(aggregate);
    const std::string file = arguments.value("--write");
    FURLONG_CHECK(fleet::check_tuning_names(tuning, file));
    FURLONG_CHECK(system_files().write_atomic(file, record::print(tuning)));
  }
  print_out(arguments.flag("--json") ? json_pretty(fleet::to_json(aggregate))
                                     : without_controls(text_of(aggregate)));
  return exit_ok;
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = aggregate_option_specs();
  all.insert(
      all.begin() + 1,
      {.name = "--write", .value_name = "FILE", .help = "Write the tuning there.", .complete = "file"});
  return all;
}

}  // namespace

CommandSpec fleet_tuning_command() {
  return {
      .name = "fleet tuning",
      .summary = "Choose each card's variant by the fleet's races, and write the tuning.",
      .description =
          "Per kind of card, program and class: the variant with the best paired gain, by the median over "
          "machines; each machine is one voice, whatever it sends. Values that the others contradict are set "
          "aside. docs/fleet-aggregation.md has every rule. The same races give the same bytes.\n"
          "A winner that is sure is pinned: its machines race one time in twenty. Give the tuning in use as "
          "--previous, so that pins hold although pinned cards race seldom.",
      .positionals = {},
      .options = options(),
      .examples =
          {{"furlong fleet tuning --store sqlite:hub.sqlite", ""},
           {"furlong fleet tuning --store sqlite:hub.sqlite --previous tuning.json --write tuning.json",
            "The next one; then furlong fleet publish."},
           {"furlong fleet tuning --store sqlite:hub.sqlite --pin NVIDIA_H200=u2-ldg --write tuning.json",
            ""}},
      .run = run};
}

}  // namespace furlong::app
