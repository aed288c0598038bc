// A batch, a reply or an enrolment that is read is printed to one that is read to the same.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/fleet/record_batch.h"

using namespace furlong;
using namespace furlong::fleet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  if (const auto batch = parse_record_batch(text)) {
    const auto body = print(*batch);
    if (!body) std::abort();
    const auto again = parse_record_batch(*body);
    if (!again || *again != *batch) std::abort();
  }
  if (const auto reply = parse_batch_reply(text)) {
    const auto again = parse_batch_reply(print(*reply));
    if (!again || *again != *reply) std::abort();
  }
  if (const auto request = parse_enrol_request(text)) {
    const auto again = parse_enrol_request(print(*request));
    if (!again || *again != *request) std::abort();
  }
  static_cast<void>(parse_enrol_reply(text).has_value());
  return 0;
}
