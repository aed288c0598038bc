// Any bytes: json_parse must answer with a tree or an `invalid` error, and a tree must survive being
// written and read again.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = furlong::as_text({data, size});
  const auto parsed = furlong::json_parse(text, "fuzz");
  if (!parsed) {
    if (parsed.error().code() != furlong::Code::invalid) std::abort();
    return 0;
  }
  if (!furlong::is_valid_utf8(text)) std::abort();
  const std::string line = furlong::json_line(*parsed);
  const auto again = furlong::json_parse(line, "written");
  if (!again || furlong::json_line(*again) != line) std::abort();
  return 0;
}
