// Any bytes: toml_parse must answer with a tree or an `invalid` error, and every node of a tree must know
// a place inside the text.

#include <algorithm>
#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/base/toml.h"

namespace {

void check(const furlong::TomlNode& node, int lines) {
  if (node.line < 1 || node.line > lines || node.column < 1) std::abort();
  if (const auto* table = node.table())
    for (const auto& [key, member] : *table) {
      if (member.key_line < 1 || member.key_line > lines) std::abort();
      if (node.find(key) != &member) std::abort();
      check(member, lines);
    }
  if (const auto* array = node.array())
    for (const auto& element : *array) check(element, lines);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = furlong::as_text({data, size});
  const auto parsed = furlong::toml_parse(text, "fuzz");
  if (!parsed) {
    if (parsed.error().code() != furlong::Code::invalid) std::abort();
    return 0;
  }
  check(*parsed, 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n')));
  return 0;
}
