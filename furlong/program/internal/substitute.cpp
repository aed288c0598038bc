#include "furlong/program/internal/substitute.h"

#include <algorithm>

#include "furlong/program/internal/reader.h"

namespace furlong::program::internal {
namespace {

// The next {name} at or after `from`: its offset and name.
std::optional<std::pair<std::size_t, std::string_view>> next_placeholder(std::string_view text,
                                                                         std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find_first_of("{}", at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    if (text[end] == '}' && is_identifier(name)) return std::pair(at, name);
  }
  return std::nullopt;
}

bool starts_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '.'; }

}  // namespace

std::vector<std::string> placeholders(std::string_view text) {
  std::vector<std::string> names;
  std::size_t from = 0;
  while (const auto found = next_placeholder(text, from)) {
    if (std::find(names.begin(), names.end(), found->second) == names.end())
      names.emplace_back(found->second);
    from = found->first + found->second.size() + 2;
  }
  return names;
}

Result<std::string> fill_placeholders(std::string_view text, const lattice::Lookup& lookup) {
  std::string filled;
  std::size_t from = 0;
  while (const auto found = next_placeholder(text, from)) {
    const auto value = lookup(found->second);
    if (!value)
      return fail(Code::invalid, "'{{{}}}' in '{}' is no knob or problem parameter", found->second, text);
    filled += text.substr(from, found->first - from);
    filled += value->text();
    from = found->first + found->second.size() + 2;
  }
  return filled + std::string(text.substr(from));
}

std::string substitute_names(std::string_view text, const std::map<std::string, std::string>& replacement) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (text[i] == '\'' || text[i] == '"') {
      while (end < text.size() && text[end] != text[i]) end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (starts_name(text[i])) {
      while (end < text.size() && continues_name(text[end])) ++end;
      if (const auto found = replacement.find(std::string(text.substr(i, end - i)));
          found != replacement.end()) {
        result += found->second;
        i = end;
        continue;
      }
    } else if (text[i] >= '0' && text[i] <= '9') {
      while (end < text.size() && continues_name(text[end])) ++end;  // 1e5, 0x1F: no names inside numbers
    }
    result += text.substr(i, end - i);
    i = end;
  }
  return result;
}

}  // namespace furlong::program::internal
