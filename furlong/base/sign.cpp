#include "furlong/base/sign.h"

#include <sodium.h>

#include <algorithm>

#include "furlong/base/hash.h"

namespace furlong {
namespace {

// Chooses libsodium's fast paths and opens its random source; safe to call from any thread, once is
// enough.
void ready() {
  static const int result = sodium_init();
  static_cast<void>(result);  // -1 means that the system has no random source: randombytes_buf then aborts
}

}  // namespace

std::string PublicKey::id() const { return blake2b_256(ByteView(bytes)).brief(); }

Result<PublicKey> PublicKey::parse(std::string_view hex) {
  auto raw = from_hex(hex);
  if (!raw) return Error(std::move(raw).error()).with("reading a public key");
  PublicKey key;
  if (raw->size() != key.bytes.size())
    return fail(Code::invalid, "a public key has {} hexadecimal digits, not {}", key.bytes.size() * 2,
                hex.size());
  std::copy(raw->begin(), raw->end(), key.bytes.begin());
  return key;
}

KeyPair KeyPair::generate() {
  ready();
  KeyPair pair;
  crypto_sign_keypair(pair.public_key.bytes.data(), pair.secret.data());
  return pair;
}

Result<KeyPair> KeyPair::from_seed(ByteView seed) {
  ready();
  if (seed.size() != crypto_sign_SEEDBYTES)
    return fail(Code::invalid, "the seed of a key has {} bytes, not {}", crypto_sign_SEEDBYTES, seed.size());
  KeyPair pair;
  crypto_sign_seed_keypair(pair.public_key.bytes.data(), pair.secret.data(), seed.data());
  return pair;
}

Bytes KeyPair::seed() const {
  Bytes raw(crypto_sign_SEEDBYTES);
  crypto_sign_ed25519_sk_to_seed(raw.data(), secret.data());
  return raw;
}

Signature sign(ByteView message, const KeyPair& key) {
  ready();
  Signature signature{};
  crypto_sign_detached(signature.data(), nullptr, message.data(), message.size(), key.secret.data());
  return signature;
}

Status verify(ByteView message, const Signature& signature, const PublicKey& key) {
  ready();
  if (crypto_sign_verify_detached(signature.data(), message.data(), message.size(), key.bytes.data()) != 0)
    return fail(Code::denied, "the signature is not that of key {} over these {} bytes", key.id(),
                message.size());
  return {};
}

}  // namespace furlong
