#include "furlong/base/hash.h"

#include <sodium.h>

namespace furlong {

struct Hasher::State {
  // libsodium asks for 64-byte alignment, which the type itself carries.
  crypto_generichash_state blake;
};

Result<Digest> Digest::parse(std::string_view hex) {
  FURLONG_TRY(const Bytes raw, from_hex(hex));
  Digest digest;
  if (raw.size() != digest.bytes.size())
    return fail(Code::invalid, "a digest has {} hexadecimal digits, not {}", digest.bytes.size() * 2,
                hex.size());
  std::copy(raw.begin(), raw.end(), digest.bytes.begin());
  return digest;
}

Digest blake2b_256(ByteView data) {
  Digest digest;
  crypto_generichash(digest.bytes.data(), digest.bytes.size(), data.data(), data.size(), nullptr, 0);
  return digest;
}

Hasher::Hasher() : state_(std::make_unique<State>()) {
  crypto_generichash_init(&state_->blake, nullptr, 0, sizeof(Digest::bytes));
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(ByteView data) {
  crypto_generichash_update(&state_->blake, data.data(), data.size());
  return *this;
}

Hasher& Hasher::add_field(std::string_view text) {
  std::array<std::uint8_t, 8> length;
  store_le<std::uint64_t>(length.data(), text.size());
  return add(length).add(as_bytes(text));
}

Digest Hasher::finish() {
  Digest digest;
  crypto_generichash_final(&state_->blake, digest.bytes.data(), digest.bytes.size());
  return digest;
}

}  // namespace furlong
