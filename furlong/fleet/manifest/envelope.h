#pragma once
// Signed envelopes (DSSE) and the body that carries them (docs/formats/fleet-manifest.md). Value types; pure
// functions, safe from any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/base/sign.h"

namespace furlong::fleet {

inline constexpr std::string_view root_media_type = "application/vnd.furlong.fleet-root.v1+json";
inline constexpr std::string_view manifest_media_type = "application/vnd.furlong.fleet-manifest.v1+json";
inline constexpr std::string_view stop_media_type = "application/vnd.furlong.fleet-stop.v1+json";

inline constexpr std::size_t largest_manifest_body = 8u << 20;
inline constexpr std::size_t most_signatures = 64;
inline constexpr std::size_t most_roots = 256;

/// The keys of a role, and how many of them must have signed.
struct RoleKeys {
  int threshold = 1;
  std::vector<PublicKey> keys;
  bool operator==(const RoleKeys&) const = default;
};

/// Bytes and who signed them. What is in here is not to be believed before open_envelope().
struct Envelope {
  struct Entry {
    std::string key_id;  ///< PublicKey::id()
    Signature signature{};
    bool operator==(const Entry&) const = default;
  };
  std::string payload_type;
  std::string payload;  ///< the very bytes that were signed
  std::vector<Entry> signatures;
  bool operator==(const Envelope&) const = default;
};

/// Adds a signature; the one that this key made before is replaced.
void add_signature(Envelope& envelope, const KeyPair& key);
/// Which of the role's keys signed these bytes as this type; each once, however often it signed.
std::vector<PublicKey> signers(const Envelope& envelope, const RoleKeys& role);
/// The payload, once as many different keys of the role signed it as its threshold says; else `denied`, with
/// what is wrong: another type, unknown keys, a signature that is not over these bytes, too few. `role_name`
/// is for the message.
Result<std::string_view> open_envelope(const Envelope& envelope, std::string_view type, const RoleKeys& role,
                                       std::string_view role_name);

Json envelope_to_json(const Envelope& envelope);
/// Strict: an unknown key is `invalid`.
Result<Envelope> envelope_from_json(const Json& json, const std::string& where);
/// A file of one envelope.
std::string print(const Envelope& envelope);
Result<Envelope> parse_envelope(std::string_view text, std::string_view name);

/// What the hub serves: any of the three, at least one.
struct ManifestBody {
  std::vector<Envelope> roots;  ///< the chain, the oldest first
  std::optional<Envelope> manifest;
  std::optional<Envelope> stop;
  bool operator==(const ManifestBody&) const = default;
};
std::string print(const ManifestBody& body);
/// `invalid` for everything that is not exactly this, `incompatible` for another schema. Signatures are not
/// looked at.
Result<ManifestBody> parse_manifest_body(std::string_view text, std::string_view name);

}  // namespace furlong::fleet
