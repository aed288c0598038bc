// The map of a lattice for pages.

#include "furlong/base/text.h"
#include "furlong/lattice/internal/show_words.h"
#include "furlong/lattice/lint.h"

namespace furlong::lattice {
namespace {

/// A cell's text: on one line, no character of it ends the cell or begins markup.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : one_line(trim(text))) {
    if (c == '|' || c == '<' || c == '*' || c == '_' || c == '`' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// As cell(), but in a code span, in which only the end of the cell needs care.
std::string code(std::string_view text) {
  return text.empty() ? "" : "`" + replace_all(replace_all(one_line(text), "`", "'"), "|", "\\|") + "`";
}

std::string knob_cell(const Knob& knob) {
  std::string text = code(knob.name);
  if (!knob.languages.empty()) text += " (" + cell(join(knob.languages, ", ")) + ")";
  if (!trim(knob.requires_text).empty()) text += ", needs " + code(knob.requires_text);
  return text;
}

std::string values_cell(const Knob& knob) {
  std::vector<std::string> parts;
  for (std::size_t v = 0; v < knob.values.size(); ++v) {
    const auto notes = internal::value_notes(knob, v);
    parts.push_back(code(knob.values[v].text()) +
                    (notes.empty() ? "" : " (" + cell(join(notes, ", ")) + ")"));
  }
  return join(parts, ", ");
}

}  // namespace

std::string show_markdown(const Lattice& lattice) {
  std::string text;
  if (lattice.knobs.empty()) {
    text += "No knobs.\n";
  } else {
    text += "| knob | values | default | wins | loses | evidence |\n|---|---|---|---|---|---|\n";
    for (const Knob& knob : lattice.knobs)
      text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", knob_cell(knob), values_cell(knob),
                          code(internal::default_text(knob)), cell(knob.wins), cell(knob.loses),
                          cell(knob.evidence));
  }
  if (!lattice.strictly_better.empty()) text += "\nStrictly better, so always applied and no knobs:\n\n";
  for (const StrictlyBetter& entry : lattice.strictly_better)
    text += fmt::format("- {}: {}\n", cell(entry.name), cell(entry.reason));
  return text;
}

}  // namespace furlong::lattice
