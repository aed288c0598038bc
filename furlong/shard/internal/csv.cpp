#include "furlong/shard/internal/csv.h"

#include <fmt/format.h>

namespace furlong::shard {

std::string csv_field(std::string_view text) {
  const bool plain =
      text.find_first_of(",\"\r\n") == text.npos && !text.starts_with(' ') && !text.ends_with(' ');
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_row(std::span<const std::string> fields) {
  std::string row;
  for (const std::string& field : fields) {
    if (&field != fields.data()) row += ',';
    row += csv_field(field);
  }
  return row + '\n';
}

Result<std::vector<std::vector<std::string>>> parse_csv(std::string_view text, const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  std::size_t at = 0;
  int line = 1;
  while (at < text.size()) {
    std::vector<std::string>& row = rows.emplace_back();
    for (bool more = true; more;) {
      std::string& field = row.emplace_back();
      const int first_line = line;
      if (at < text.size() && text[at] == '"') {
        for (++at;; ++at) {
          if (at >= text.size())
            return fail(Code::invalid, "{}:{}: a quote that is not closed", name, first_line);
          if (text[at] == '\n') ++line;
          if (text[at] != '"') {
            field += text[at];
          } else if (at + 1 < text.size() && text[at + 1] == '"') {
            field += text[++at];
          } else {
            break;
          }
        }
        ++at;
      } else {
        while (at < text.size() && text[at] != ',' && text[at] != '\n' && text[at] != '\r' && text[at] != '"')
          field += text[at++];
      }
      if (at < text.size() && text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') ++at;
      if (at < text.size() && text[at] != ',' && text[at] != '\n')
        return fail(Code::invalid, "{}:{}: a quote or a line break inside a field without quotes", name,
                    line);
      more = at < text.size() && text[at] == ',';
      if (at < text.size() && text[at] == '\n') ++line;
      ++at;
    }
  }
  return rows;
}

std::string csv_number(double value) { return fmt::format("{}", value); }

}  // namespace furlong::shard
