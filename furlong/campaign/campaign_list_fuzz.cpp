// Any text: a list of races is read or refused as `invalid` (`incompatible`: another format), and as an item
// it is read or refused; what is read of an item gives the same bytes again.

#include <cstdlib>

#include "furlong/campaign/campaign_list.h"
#include "furlong/campaign/internal/items.h"

using namespace furlong;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto expected = [](const Error& error, Code code) {
    if (error.code() != code && error.code() != Code::incompatible) std::abort();
  };
  const ByteView bytes(data, size);
  const auto list = campaign::parse_campaign(as_text(bytes), "/base", "fuzz");
  if (!list) expected(list.error(), Code::invalid);
  if (list)
    for (const campaign::ListedProgram& one : *list)
      if (one.problems.empty() || one.devices.empty() || !one.file.is_absolute()) std::abort();
  const auto item = campaign::decode(bytes);
  if (!item) expected(item.error(), Code::mismatch);
  if (item)
    std::visit(
        [](const auto& one) {
          const Bytes written = campaign::encode(one);
          const auto again = campaign::decode(written);
          if (!again || std::visit([](const auto& two) { return campaign::encode(two); }, *again) != written)
            std::abort();
        },
        *item);
  return 0;
}
