#pragma once
// Byte spans, hexadecimal, and little-endian loads and stores.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Lower-case hexadecimal, two digits a byte.
std::string to_hex(ByteView bytes);
/// Accepts both cases; an odd length or a foreign character is `invalid` and names the position.
Result<Bytes> from_hex(std::string_view text);

template <class T>
T load_le(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);  // Furlong runs on little-endian machines only (checked in base)
  return value;
}
template <class T>
void store_le(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace furlong
