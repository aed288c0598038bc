// A command or an event that is read is printed to one that is read to the same.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/record/worker_protocol.h"

using namespace furlong;
using namespace furlong::record;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  if (const auto command = parse_worker_command(text)) {
    const auto again = parse_worker_command(print(*command));
    if (!again || *again != *command) std::abort();
  }
  if (const auto event = parse_worker_event(text)) {
    const std::string line = print(*event);
    if (line.find('\n') != std::string::npos) std::abort();
    const auto again = parse_worker_event(line);
    if (!again || print(*again) != line || again->index() != event->index()) std::abort();
  }
  return 0;
}
