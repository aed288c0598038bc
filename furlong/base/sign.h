#pragma once
// Ed25519 signatures (libsodium) over exact bytes.

#include <array>
#include <string>

#include "furlong/base/bytes.h"

namespace furlong {

struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const PublicKey&) const = default;
  /// First 16 hexadecimal digits of the key's BLAKE2b-256: the key id in files and messages.
  std::string id() const;
  std::string hex() const { return to_hex(bytes); }
  static Result<PublicKey> parse(std::string_view hex);
};

struct KeyPair {
  PublicKey public_key;
  std::array<std::uint8_t, 64> secret{};
  /// A fresh pair from the system's random source.
  static KeyPair generate();
  /// The pair of a 32-byte seed (tests, and secret-key files, which hold the seed as 64 hex digits).
  static Result<KeyPair> from_seed(ByteView seed);
  Bytes seed() const;
};

using Signature = std::array<std::uint8_t, 64>;

Signature sign(ByteView message, const KeyPair& key);
/// `denied` when the signature is not that key's over exactly these bytes.
Status verify(ByteView message, const Signature& signature, const PublicKey& key);

}  // namespace furlong
