#pragma once
// BLAKE2b-256 (libsodium): the content hash of packs, sources and store items.

#include <array>
#include <compare>
#include <memory>
#include <string>

#include "furlong/base/bytes.h"

namespace furlong {

/// 32 bytes; ordered and comparable; `hex()` is its name in files.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
  std::string hex() const { return to_hex(bytes); }
  /// First 16 hexadecimal digits, for people.
  std::string brief() const { return hex().substr(0, 16); }
  static Result<Digest> parse(std::string_view hex);
};

Digest blake2b_256(ByteView data);
inline Digest blake2b_256(std::string_view text) { return blake2b_256(as_bytes(text)); }

/// Incremental form. `add_field` also hashes the length, so that ("ab","c") and ("a","bc") differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  Hasher& add(ByteView data);
  Hasher& add_field(std::string_view text);
  /// Ends the hash; the object must not be used after.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace furlong
