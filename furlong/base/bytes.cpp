#include "furlong/base/bytes.h"

#include <bit>

namespace furlong {

// load_le and store_le copy bytes as they are; a big-endian port has to swap there.
static_assert(std::endian::native == std::endian::little, "Furlong runs on little-endian machines only");

std::string to_hex(ByteView bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

namespace {
int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
}  // namespace

Result<Bytes> from_hex(std::string_view text) {
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int value = hex_value(text[i]);
    if (value < 0)
      return fail(Code::invalid, "byte {} of a hexadecimal text is 0x{:02x}: it must be 0-9, a-f or A-F", i,
                  static_cast<unsigned char>(text[i]));
    if (i % 2 == 0)
      bytes.push_back(static_cast<std::uint8_t>(value << 4));
    else
      bytes.back() = static_cast<std::uint8_t>(bytes.back() | value);
  }
  if (text.size() % 2 != 0)
    return fail(Code::invalid, "a hexadecimal text ends at byte {} in the middle of a pair of digits",
                text.size());
  return bytes;
}

}  // namespace furlong
