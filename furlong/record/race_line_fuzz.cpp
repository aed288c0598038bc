// A line that is read is printed to one that is read to the same.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/record/race_line.h"

using namespace furlong;
using namespace furlong::record;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto line = parse_race_line(as_text({data, size}));
  if (!line) return 0;
  const std::string text = print(*line);
  const auto again = parse_race_line(text);
  if (!again || print(*again) != text) std::abort();
  if (again->device != line->device || again->winner != line->winner || again->outs != line->outs)
    std::abort();
  if (again->program_class != line->program_class) std::abort();
  return 0;
}
