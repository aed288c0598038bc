// From what a user typed to a program.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/program/linear/shipped.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/program/pack.h"

namespace furlong::program {
namespace {

namespace fs = std::filesystem;

Result<std::shared_ptr<const Program>> open_lottery(const ProgramRequest& request) {
  lottery::Parameters parameters;
  parameters.epoch_seed = lottery::demonstration_seed();
  parameters.day = request.day;
  parameters.geometry = request.geometry;
  parameters.dataset_mib = request.dataset_mib;
  parameters.loads = request.loads;
  parameters.wide = request.wide;
  if (!request.epoch_seed_hex.empty()) {
    const auto seed = from_hex(request.epoch_seed_hex);
    if (!seed || seed->size() != parameters.epoch_seed.size())
      return fail(Code::invalid, "the epoch seed '{}' is not {} hexadecimal digits", request.epoch_seed_hex,
                  2 * parameters.epoch_seed.size());
    std::copy(seed->begin(), seed->end(), parameters.epoch_seed.begin());
  }
  FURLONG_TRY(const PackContents contents, lottery::make_pack(parameters));
  return lottery::program_of_pack(contents, {});
}

// Where shipped program files lie: as installed, and in a source tree above the binary.
std::vector<fs::path> shipped_folders() {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("FURLONG_PROGRAMS"); given != nullptr && *given != '\0')
    folders.emplace_back(given);
  const auto self = own_executable();
  if (!self) return folders;
  folders.push_back(self->parent_path().parent_path() / "share" / "furlong" / "programs");
  fs::path folder = self->parent_path();
  for (int up = 0; up < 4 && folder != folder.parent_path(); ++up, folder = folder.parent_path())
    folders.push_back(folder / "programs");
  return folders;
}

bool is_plain_name(const std::string& what) {
  return !what.empty() && what.find('/') == std::string::npos && what.find('.') == std::string::npos;
}

// The program files two levels down, by name; where two folders have one of a name, the first counts.
std::map<std::string, fs::path> shipped_files(Files& files) {
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : shipped_folders()) {
    const auto groups = files.list(folder);
    if (!groups) continue;
    for (const std::string& group : *groups) {
      if (!group.ends_with('/')) continue;
      const auto names = files.list(folder / group);
      if (!names) continue;
      for (const std::string& name : *names)
        if (name.ends_with(".toml")) found.emplace(fs::path(name).stem().string(), folder / group / name);
    }
  }
  return found;
}

// In the library itself, for where no file of it lies.
bool is_built_in(const std::string& name) {
  return std::ranges::find(linear::shipped_names(), name) != linear::shipped_names().end();
}

Result<fs::path> shipped_program_file(const std::string& name, Files& files) {
  const auto shipped = shipped_files(files);
  if (const auto found = shipped.find(name); found != shipped.end()) return found->second;
  return fail(Code::invalid, "'{}' is no program file, no pack's folder and no shipped program{}", name,
              did_you_mean(name, shipped_programs(files)));
}

}  // namespace

std::vector<std::string> shipped_programs(Files& files) {
  auto shipped = shipped_files(files);
  shipped.try_emplace("lottery");
  for (const std::string_view name : linear::shipped_names()) shipped.try_emplace(std::string(name));
  std::vector<std::string> names;
  for (const auto& [name, file] : shipped) names.push_back(name);
  return names;
}

bool is_shipped(const ProgramRequest& request, Files& files) {
  if (request.what == "lottery") return true;
  const auto whole = [](const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    return error ? path : real;
  };
  const auto shipped = shipped_files(files);
  if (is_plain_name(request.what)) return shipped.contains(request.what) || is_built_in(request.what);
  return std::any_of(shipped.begin(), shipped.end(),
                     [&](const auto& each) { return whole(each.second) == whole(request.what); });
}

Result<std::shared_ptr<const Program>> open_program(const ProgramRequest& request, Files& files) {
  if (request.what == "lottery") return open_lottery(request);
  if (request.what.empty()) return fail(Code::invalid, "no program was named");
  const fs::path path = request.what;
  if (files.exists(path / "pack.toml")) return load_pack(path, files);
  if (path.extension() == ".toml" && path.filename() == "pack.toml" && files.exists(path))
    return load_pack(path.has_parent_path() ? path.parent_path() : fs::path("."), files);
  if (path.extension() == ".toml") return load_program_file(path, files);
  if (is_plain_name(request.what)) {
    const auto file = shipped_program_file(request.what, files);
    if (file) return load_program_file(*file, files);
    if (is_built_in(request.what)) return linear::shipped_program(request.what);
    return Error(file.error());
  }
  if (files.exists(path))
    return fail(Code::invalid,
                "'{}' is neither a program file (.toml) nor a pack's folder (with pack.toml); "
                "furlong init writes a first program file for a kernel",
                request.what);
  return fail(Code::invalid, "'{}' is not there", request.what);
}

}  // namespace furlong::program
