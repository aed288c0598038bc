// The lines of the trial protocol: no input may crash a reader, and what is read is written and read alike.
#include <cstdlib>

#include "furlong/race/dispatch.h"
#include "furlong/race/internal/trial_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace furlong::race;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (const auto request = parse_trial_request(line)) {
    const auto again = parse_trial_request(to_line(*request));
    if (!again || !(*again == *request)) std::abort();
  }
  if (const auto event = parse_trial_event(line); event && *event) {
    // The words of an error are cut and cleaned when they are written; once is enough.
    const auto once = parse_trial_event(to_line(**event));
    if (!once || !*once) std::abort();
    const auto twice = parse_trial_event(to_line(**once));
    if (!twice || !*twice || !(**twice == **once)) std::abort();
  }
  (void)DispatchTable::parse(line, "input");
  return 0;
}
