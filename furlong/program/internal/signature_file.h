#pragma once
// pack.sig: an Ed25519 signature over a pack's content hash.

#include <string>
#include <string_view>

#include "furlong/base/hash.h"
#include "furlong/base/sign.h"

namespace furlong::program::internal {

/// The file's bytes.
std::string make_signature_file(const Digest& content, const KeyPair& key);
/// The key whose signature over `content` the file holds; `incompatible` for another format, `denied` when
/// the signature does not hold, `corrupt` when the file is not byte for byte as make_signature_file writes
/// it.
Result<PublicKey> check_signature_file(std::string_view text, const Digest& content, std::string_view name);

}  // namespace furlong::program::internal
