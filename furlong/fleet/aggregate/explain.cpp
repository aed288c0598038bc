// An entry explained to people.

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/numbers.h"

namespace furlong::fleet {
namespace {

std::string signed_pct(double value) {
  return std::isfinite(value) ? fmt::format("{:+.2f}", internal::shown(value)) : "-";
}
std::string plain(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

std::string interval_text(const std::optional<record::Interval>& interval) {
  return interval
             ? fmt::format("{:+.2f} to {:+.2f}", internal::shown(interval->lo), internal::shown(interval->hi))
             : "-";
}

std::string exits_text(const VariantEvidence& variant) {
  std::vector<std::string> texts;
  for (const auto& [exit, races] : variant.exits) texts.push_back(fmt::format("{} {}", exit, races));
  return join(texts, ", ");
}

std::string variants_table(const RowEvidence& row) {
  Table table;
  table.column("variant");
  for (const char* heading :
       {"gain %", "95%", "stands %", "rate", "per W", "samples", "races", "machines", "won"})
    table.column(heading, Table::Align::right);
  table.column("left its race");
  for (const VariantEvidence& variant : row.variants) {
    const bool raced = variant.gain_pct.samples > 0;
    table.row({variant.name, signed_pct(variant.gain_pct.median), interval_text(variant.gain_pct.ci),
               raced ? signed_pct(variant.standing_pct) : "-", plain(variant.rate.median),
               plain(variant.rate_per_w.median), std::to_string(variant.gain_pct.samples),
               std::to_string(variant.gain_pct.races), std::to_string(variant.gain_pct.machines),
               std::to_string(variant.won), exits_text(variant)});
  }
  return table.text();
}

/// Gains of the winner (else of the best variant) by power cap and by driver.
std::string parts_table(const VariantEvidence& variant) {
  Table table;
  table.column(variant.name + " by");
  table.column("");
  for (const char* heading : {"gain %", "95%", "samples", "machines"})
    table.column(heading, Table::Align::right);
  const auto add = [&](const char* by, const std::string& name, const Estimate& gain) {
    table.row({by, name, signed_pct(gain.median), interval_text(gain.ci), std::to_string(gain.samples),
               std::to_string(gain.machines)});
  };
  for (const Stratum& stratum : variant.strata) add("power", stratum.name, stratum.gain);
  for (const auto& [driver, gain] : variant.drivers)
    add("driver", driver.empty() ? "not told" : driver, gain);
  for (const auto& [day, gain] : variant.days) add("day", day, gain);
  return table.text();
}

std::string set_aside_table(const RowEvidence& row) {
  Table table;
  table.column("set aside");
  table.column("machine");
  table.column("races", Table::Align::right);
  table.column("why");
  for (const SetAside& one : row.set_aside)
    table.row({one.reason, one.machine.empty() ? "-" : one.machine, std::to_string(one.races), one.why});
  return table.text();
}

std::string indented(std::string_view text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) out += line.empty() ? "" : "  " + line + "\n";
  return out;
}

std::string row_text(const RowEvidence& row, const AggregateOptions& options) {
  const Subject& subject = row.subject;
  std::string text =
      fmt::format("{}{} on {}{}{}: {}\n", subject.program,
                  subject.program_class == "{}" ? "" : " " + subject.program_class, subject.backend,
                  subject.metric.empty() ? "" : ", metric " + subject.metric,
                  subject.unit.empty() ? "" : ", rates in " + subject.unit,
                  row.variant.empty() ? std::string("no entry")
                                      : fmt::format("{} ({})", row.variant, choice_name(row.choice)));
  text += fmt::format("  {}\n", row.why);
  if (!row.leads && row.choice != Choice::none) text += "  The tuning takes the row of another back end.\n";
  text += fmt::format("  {} races, {} records, {} voices, {} pinned runs{}; gains in {}; candidates: {}\n",
                      row.races, row.samples, row.machines, row.seen_pinned,
                      row.newest_us > 0 ? ", the newest of " + iso_time(row.newest_us) : std::string(),
                      options.by == By::energy ? "work per joule" : "rate",
                      row.candidates.empty() ? "none" : join(row.candidates, ", "));
  if (!row.variants.empty()) text += indented(variants_table(row));
  const auto shown = std::ranges::find_if(row.variants, [&](const VariantEvidence& variant) {
    const bool raced = variant.name != "base" && variant.gain_pct.samples > 0;
    return raced && (row.variant.empty() || row.variant == "base" || variant.name == row.variant);
  });
  if (shown != row.variants.end()) text += "\n" + indented(parts_table(*shown));
  if (!row.set_aside.empty()) text += "\n" + indented(set_aside_table(row));
  return text;
}

}  // namespace

std::string explain_text(const CardEvidence& card, const AggregateOptions& options) {
  std::string text = card.key;
  if (card.label != card.key) text += fmt::format(", called {}", card.label);
  if (!card.aliases.empty()) text += fmt::format(", also {}", join(card.aliases, ", "));
  if (!card.silicon.hash.empty()) text += fmt::format(", silicon {}", card.silicon.hash);
  text += fmt::format("\nwindow of {:g} days{}\n", options.window_days,
                      options.until_us ? " until " + iso_time(*options.until_us) : std::string());
  for (const RowEvidence& row : card.rows) text += "\n" + row_text(row, options);
  return without_controls(text);
}

}  // namespace furlong::fleet
