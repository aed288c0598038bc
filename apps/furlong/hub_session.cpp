#include "apps/furlong/hub_session.h"

#include <algorithm>

#include "apps/furlong/agent_session.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/program/pack.h"

namespace furlong::app {

namespace fs = std::filesystem;

fs::path shipped_web() {
  const auto self = own_executable();
  if (!self) return {};
  std::vector<fs::path> folders{self->parent_path().parent_path() / "share" / "furlong" / "web"};
  fs::path folder = self->parent_path();
  for (int up = 0; up < 4 && folder != folder.parent_path(); ++up, folder = folder.parent_path())
    folders.push_back(folder / "web" / "dist");
  const auto found = std::ranges::find_if(
      folders, [](const fs::path& each) { return system_files().exists(each / "index.html"); });
  return found == folders.end() ? fs::path() : *found;
}

std::vector<fleet::ShippedLattice> shipped_lattices() {
  std::vector<fleet::ShippedLattice> all;
  for (const std::string& name : program::shipped_programs()) {
    program::ProgramRequest request;
    request.what = name;
    request.geometry = "small";
    const auto program = program::open_program(request);
    if (!program) {
      print_log(LogLevel::warning, fmt::format("audit: {} is left out: {}", name, program.error().text()));
      continue;
    }
    // The lottery's text differs by class and epoch, so that the program in hand is one of many.
    const std::string source = (*program)->epoch.empty() ? (*program)->source_hash().hex() : "";
    for (const program::Edition& edition : (*program)->editions)
      all.push_back({(*program)->name, edition.language, source, edition.lattice});
  }
  return all;
}

}  // namespace furlong::app
