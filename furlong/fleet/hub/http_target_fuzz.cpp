// A target that is read says the same when it is escaped and read again.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/fleet/hub/internal/http/target.h"

using namespace furlong;
using namespace furlong::fleet;

namespace {

void add_escaped(std::string& out, std::string_view text) {
  for (const char byte : text) out += fmt::format("%{:02x}", static_cast<unsigned char>(byte));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto target = parse_target(as_text({data, size}));
  if (!target) return 0;
  std::string again = "/";
  if (!target->path.starts_with('/')) std::abort();
  add_escaped(again, std::string_view(target->path).substr(1));
  for (std::size_t i = 0; i < target->query.size(); ++i) {
    again += i == 0 ? '?' : '&';
    add_escaped(again, target->query[i].first);
    again += '=';
    add_escaped(again, target->query[i].second);
  }
  const auto second = parse_target(again);
  if (!second || *second != *target) std::abort();
  return 0;
}
