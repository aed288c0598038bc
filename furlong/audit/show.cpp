// The report for people.
#include "furlong/audit/audit.h"
#include "furlong/audit/internal/verdict.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::audit {
namespace {

std::string place_cell(const ValueReport& value, const std::optional<Place>& place) {
  return place ? internal::place_text(value, *place) : "-";
}

std::string knob_table(const lattice::Knob& knob, const KnobReport& report) {
  Table table;
  table.column("value");
  table.column("verdict");
  table.column("races", Table::Align::right);
  table.column("regimes", Table::Align::right);
  table.column("best");
  table.column("worst");
  for (const ValueReport& value : report.values)
    table.row({knob.values[value.value].text(), std::string(verdict_name(value.verdict)),
               std::to_string(value.races), std::to_string(value.regimes.size()),
               place_cell(value, value.best), place_cell(value, value.worst)});
  return table.text();
}

std::string claim_line(const lattice::Knob& knob, const ValueReport& value, const ClaimReport& claim) {
  const std::string where = claim.claim.where.empty() ? "everywhere" : "where " + claim.claim.where;
  std::string text = fmt::format(
      "  claim: {} {} {}: {} ({} confirm, {} contradict, {} open", knob.values[value.value].text(),
      lattice::claim_outcome_name(claim.claim.outcome), where, claim_state_name(claim.state),
      claim.confirming.size(), claim.contradicting.size(), claim.undecided.size());
  if (!claim.unjudged.empty()) text += fmt::format(", {} do not tell", claim.unjudged.size());
  return text + ")\n";
}

std::string fault_line(const RegimeEvidence& evidence, const Fault& fault) {
  const bool said = fault.why.starts_with(fault.exit);  // "gate: element 3: ..."
  return fmt::format("  {} failed in {} of {} races with {}: {}\n", one_line(fault.variant), fault.races,
                     evidence.races, evidence.regime.text(),
                     one_line(said ? fault.why : fault.exit + ": " + fault.why));
}

std::string knob_text(const lattice::Knob& knob, const KnobReport& report) {
  std::string text = fmt::format("\n{} (default {}): {}\n", knob.name, knob.values[knob.default_index].text(),
                                 report.summary);
  text += knob_table(knob, report);
  for (const ValueReport& value : report.values) {
    text += fmt::format("  {}: {}\n", knob.values[value.value].text(), value.why);
    for (const RegimeEvidence& evidence : value.regimes)
      for (const Fault& fault : evidence.faults) text += fault_line(evidence, fault);
    for (const ClaimReport& claim : value.claims) text += claim_line(knob, value, claim);
  }
  return text;
}

std::string counts_text(const Report& report) {
  std::string text = fmt::format("{} of {} records hold evidence", report.used, report.records);
  const std::pair<int, std::string_view> others[] = {{report.other_program, "of other programs"},
                                                     {report.other_language, "of other languages"},
                                                     {report.other_metric, "of a metric that is not known"},
                                                     {report.repeated, "repeated"},
                                                     {report.other_source, "of other texts of the program"}};
  for (const auto& [count, what] : others)
    if (count > 0) text += fmt::format(", {} {}", count, what);
  text += fmt::format("; texts of the program: {}\n", report.sources);
  if (report.other_source > 0)
    text +=
        fmt::format("note: {}; --any-source takes records of every text\n",
                    report.options.source.empty() ? "of each class of the program only the newest text counts"
                                                  : "only the program's text as it is now counts");
  if (report.fallbacks > 0)
    text += fmt::format(
        "note: {} variants were left out: their shape or chip could not have the kernel asked for, and "
        "another "
        "ran in its place\n",
        report.fallbacks);
  if (report.no_interval > 0)
    text += fmt::format(
        "note: {} rates without an interval were left out; races by the plain rule prove nothing\n",
        report.no_interval);
  return text;
}

}  // namespace

std::string show_text(const lattice::Lattice& lattice, const Report& report) {
  std::string text = counts_text(report);
  for (const KnobReport& knob : report.knobs) text += knob_text(lattice.knobs[knob.knob], knob);
  if (!report.lost.empty()) text += "\nVariants that are none of this lattice (values that left it):\n";
  for (const LostVariant& lost : report.lost)
    text += fmt::format("  {} ({} records): {}\n", one_line(lost.name), lost.records, one_line(lost.why));
  if (!report.defects.empty()) text += "\nVariants that are wrong, to be mended whatever the table says:\n";
  for (const std::string& defect : report.defects) text += "  " + defect + "\n";
  if (!report.contradictions.empty()) text += "\nThe records contradict the program's sentences:\n";
  for (const std::string& contradiction : report.contradictions) text += "  " + contradiction + "\n";
  return text;
}

}  // namespace furlong::audit
