#include "furlong/program/internal/headers.h"

#include <algorithm>
#include <optional>
#include <set>

#include "furlong/base/text.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kMostHeaders = 2000;
constexpr std::size_t kMostBytes = 64u << 20;

std::optional<Include> include_of_line(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = trim(line.substr(1));
  if (!line.starts_with("include")) return std::nullopt;
  line = trim(line.substr(7));
  if (line.size() < 3 || (line[0] != '"' && line[0] != '<')) return std::nullopt;
  const std::size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
  if (end == std::string_view::npos || end == 1) return std::nullopt;
  return Include{std::string(line.substr(1, end - 1)), line[0] == '"'};
}

struct Search {
  Files& files;
  const std::vector<std::filesystem::path>& include_folders;
  std::vector<Header> found;
  std::set<std::string> seen;
  std::size_t bytes = 0;

  std::optional<std::filesystem::path> locate(const Include& include,
                                              const std::filesystem::path& beside) const {
    std::vector<std::filesystem::path> folders;
    if (include.quoted && !beside.empty()) folders.push_back(beside);
    folders.insert(folders.end(), include_folders.begin(), include_folders.end());
    for (const auto& folder : folders) {
      const auto path = (folder / include.path).lexically_normal();
      if (files.exists(path)) return path;
    }
    return std::nullopt;
  }

  // Appends the headers that `text` names directly; those of a header come when its turn comes.
  Status add(std::string_view text, const std::filesystem::path& beside) {
    for (const Include& include : includes_of(text)) {
      const auto path = locate(include, beside);
      if (!path || !seen.insert(path->string()).second) continue;
      auto content = files.read(*path, kMostBytes);
      if (!content)
        return Error(std::move(content).error()).with(fmt::format("reading the header '{}'", include.path));
      bytes += content->size();
      found.push_back({*path, *std::move(content)});
      if (found.size() > kMostHeaders || bytes > kMostBytes)
        return fail(Code::invalid,
                    "the source includes more than {} headers or {} of them: give fewer include folders",
                    kMostHeaders, human_bytes(kMostBytes));
    }
    return {};
  }
};

}  // namespace

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto include = include_of_line(text.substr(0, end))) list.push_back(*std::move(include));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

Result<std::vector<Header>> read_headers(Files& files, std::string_view text,
                                         const std::filesystem::path& source_folder,
                                         const std::vector<std::filesystem::path>& include_folders) {
  Search search{.files = files, .include_folders = include_folders, .found = {}, .seen = {}};
  FURLONG_CHECK(search.add(text, source_folder));
  for (std::size_t i = 0; i < search.found.size(); ++i) {
    const Header header = search.found[i];  // a copy: add() moves the vector's memory
    FURLONG_CHECK(search.add(header.text, header.file.parent_path()));
  }
  return std::move(search.found);
}

}  // namespace furlong::program::internal
