#pragma once
// Base64 of RFC 4648 with padding (libsodium).

#include <string>
#include <string_view>

#include "furlong/base/bytes.h"

namespace furlong {

std::string to_base64(ByteView bytes);
/// Exactly what to_base64 writes: blanks, missing padding and bits that stand for nothing are `invalid`, so
/// that the same bytes have one text.
Result<std::string> from_base64(std::string_view text);

/// 32 bytes of the system's random source, as letters, digits, - and _ (base64url, without padding): 43 of
/// them, to be typed and put into URLs. A secret: not from Random.
std::string make_secret_text();

}  // namespace furlong
