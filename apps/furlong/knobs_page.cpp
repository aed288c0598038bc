#include "apps/furlong/knobs_page.h"

#include <algorithm>

#include "apps/furlong/session.h"
#include "furlong/base/text.h"
#include "furlong/lattice/lint.h"
#include "furlong/program/pack.h"

namespace furlong::app {
namespace {

/// Knobs of several languages stand once, as in the file.
lattice::Lattice joined(const program::Program& program, std::string_view language) {
  lattice::Lattice all;
  for (const program::Edition& edition : program.editions) {
    if (!language.empty() && edition.language != language) continue;
    for (const lattice::Knob& knob : edition.lattice.knobs)
      if (all.knob(knob.name) == nullptr) all.knobs.push_back(knob);
    for (const lattice::StrictlyBetter& entry : edition.lattice.strictly_better)
      if (std::ranges::find(all.strictly_better, entry.name, &lattice::StrictlyBetter::name) ==
          all.strictly_better.end())
        all.strictly_better.push_back(entry);
  }
  std::ranges::stable_sort(all.knobs, {}, &lattice::Knob::line);
  return all;
}

Result<std::vector<std::filesystem::path>> program_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  FURLONG_TRY(const auto names, as_input(system_files().list(folder)));
  for (const std::string& name : names) {
    if (name.ends_with('/')) {
      FURLONG_TRY(const auto inner, program_files(folder / name.substr(0, name.size() - 1)));
      files.insert(files.end(), inner.begin(), inner.end());
    } else if (name.ends_with(".toml")) {
      files.push_back(folder / name);
    }
  }
  std::ranges::sort(files);
  return files;
}

/// The lottery's texts are made, not read: its file alone is no program.
Result<std::shared_ptr<const program::Program>> open_shipped(const std::filesystem::path& file) {
  program::ProgramRequest request;
  request.what = file.stem() == "lottery" ? "lottery" : file.string();
  request.geometry = "small";
  return program::open_program(request);
}

}  // namespace

std::string program_markdown(const program::Program& program, std::string_view language) {
  std::string text = fmt::format("## {}\n\n", program.name);
  if (!program.summary.empty()) text += one_line(program.summary) + ".\n\n";
  return text + lattice::show_markdown(joined(program, language));
}

Result<std::string> knobs_page(const std::filesystem::path& folder) {
  std::string page =
      "# Knobs of the programs that ship\n\n"
      "Written by `./dev docs` from the program files; [lattice.md](lattice.md) says what the columns mean. "
      "A value's "
      "parentheses hold its tag in the names of variants; `furlong knobs audit` holds race records against "
      "these "
      "sentences.\n";
  FURLONG_TRY(const auto files, program_files(folder));
  for (const std::filesystem::path& file : files) {
    FURLONG_TRY(const auto program, open_shipped(file));
    page += "\n" + program_markdown(*program);
  }
  return page;
}

}  // namespace furlong::app
