#include "furlong/program/internal/pack_files.h"

#include <algorithm>
#include <set>

#include "furlong/base/text.h"

namespace furlong::program::internal {
namespace {

std::filesystem::path plain(const std::filesystem::path& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return (error ? path : whole).lexically_normal();
}

}  // namespace

bool is_pack_name(std::string_view name) {
  if (name.empty() || name.size() > 400) return false;
  for (const std::string& part : split(name, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
    const bool plain_letters = std::all_of(part.begin(), part.end(), [](char c) {
      return c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
             (c >= 'A' && c <= 'Z');
    });
    if (!plain_letters) return false;
  }
  return true;
}

PackFiles::PackFiles(std::filesystem::path folder, const std::map<std::string, std::string>& files)
    : folder_(plain(folder / "x").parent_path()), files_(files) {}

std::optional<std::string> PackFiles::name_of(const std::filesystem::path& path) const {
  const std::string name = plain(path).lexically_relative(folder_).generic_string();
  if (name.empty() || name == ".." || name.starts_with("../")) return std::nullopt;
  return name;
}

Result<std::string> PackFiles::read(const std::filesystem::path& path, std::size_t max_bytes) {
  const auto name = name_of(path);
  if (!name) return fail(Code::denied, "'{}' is outside the pack", path.string());
  const auto found = files_.find(*name);
  if (found == files_.end()) return fail(Code::unavailable, "the pack has no file '{}'", *name);
  if (found->second.size() > max_bytes)
    return fail(Code::invalid, "'{}' in the pack has {} bytes, more than {}", *name, found->second.size(),
                max_bytes);
  return found->second;
}

Status PackFiles::write_atomic(const std::filesystem::path& path, std::string_view) {
  return fail(Code::denied, "a pack is not written to ('{}')", path.string());
}

bool PackFiles::exists(const std::filesystem::path& path) {
  const auto name = name_of(path);
  return name && files_.contains(*name);
}

Result<std::vector<std::string>> PackFiles::list(const std::filesystem::path& folder) {
  const auto name = name_of(folder);
  if (!name) return fail(Code::denied, "'{}' is outside the pack", folder.string());
  const std::string prefix = *name == "." ? "" : *name + "/";
  std::set<std::string> entries;
  for (const auto& [file, bytes] : files_) {
    if (!file.starts_with(prefix)) continue;
    const std::string rest = file.substr(prefix.size());
    const std::size_t slash = rest.find('/');
    entries.insert(slash == std::string::npos ? rest : rest.substr(0, slash + 1));
  }
  return std::vector<std::string>(entries.begin(), entries.end());
}

Status PackFiles::remove(const std::filesystem::path& path) {
  return fail(Code::denied, "a pack is not written to ('{}')", path.string());
}

}  // namespace furlong::program::internal
