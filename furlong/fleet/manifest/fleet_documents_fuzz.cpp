// An envelope, a body, a document or a state that is read is printed to one that is read to the same.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/fleet/manifest/documents.h"
#include "furlong/fleet/manifest/envelope.h"
#include "furlong/fleet/manifest/state.h"

using namespace furlong;
using namespace furlong::fleet;

namespace {

template <class Parse>
void there_and_back(std::string_view text, Parse parse) {
  const auto value = parse(text, "input");
  if (!value) return;
  const auto again = parse(print(*value), "again");
  if (!again || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  there_and_back(text, [](auto bytes, auto name) { return parse_envelope(bytes, name); });
  there_and_back(text, [](auto bytes, auto name) { return parse_manifest_body(bytes, name); });
  there_and_back(text, [](auto bytes, auto name) { return parse_root(bytes, name); });
  there_and_back(text, [](auto bytes, auto name) { return parse_manifest(bytes, name); });
  there_and_back(text, [](auto bytes, auto name) { return parse_stop(bytes, name); });
  there_and_back(text, [](auto bytes, auto name) { return parse_trust(bytes, name); });
  return 0;
}
