#include "furlong/program/rewrite.h"

#include <algorithm>
#include <utility>

#include "furlong/base/text.h"

namespace furlong::program {
namespace {

struct Edit {
  std::size_t at = 0;
  const Rewrite* rewrite = nullptr;
};

// An anchor as one line of a message.
std::string shown(std::string_view anchor) {
  constexpr std::size_t most = 80;
  std::string line = replace_all(replace_all(anchor, "\n", "\\n"), "\t", "\\t");
  if (line.size() <= most) return line;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return line.substr(0, end) + "…";
}

std::vector<std::size_t> occurrences(std::string_view text, std::string_view anchor) {
  std::vector<std::size_t> found;
  for (std::size_t at = text.find(anchor); at != std::string_view::npos; at = text.find(anchor, at + 1))
    found.push_back(at);
  return found;
}

}  // namespace

Result<std::string> apply_rewrites(std::string_view text, std::span<const Rewrite> rewrites) {
  std::vector<Edit> edits;
  for (const Rewrite& rewrite : rewrites) {
    if (rewrite.anchor.empty()) return fail(Code::invalid, "an anchor is empty");
    const auto found = occurrences(text, rewrite.anchor);
    if (found.empty()) return fail(Code::invalid, "anchor not found: '{}'", shown(rewrite.anchor));
    if (found.size() != static_cast<std::size_t>(rewrite.expected))
      return fail(Code::invalid, "anchor '{}' occurs {} times, expected {}", shown(rewrite.anchor),
                  found.size(), rewrite.expected);
    for (const std::size_t at : found) edits.push_back({at, &rewrite});
  }
  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return std::pair(a.at, a.rewrite) < std::pair(b.at, b.rewrite);  // all rewrites stand in one array
  });
  std::string result;
  std::size_t done = 0;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const auto& [at, rewrite] = edits[i];
    if (at < done)
      return fail(Code::invalid,
                  "the anchors '{}' and '{}' overlap: one rewrite must not edit another's text",
                  shown(edits[i - 1].rewrite->anchor), shown(rewrite->anchor));
    result += text.substr(done, at - done);
    result += rewrite->replacement;
    done = at + rewrite->anchor.size();
  }
  result += text.substr(done);
  return result;
}

}  // namespace furlong::program
