#pragma once
// The three documents inside the envelopes (docs/formats/fleet-manifest.md): root, manifest, stop. Value
// types; pure functions, safe from any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/fleet/manifest/envelope.h"
#include "furlong/record/tuning.h"

namespace furlong::fleet {

/// Versions are whole numbers from 1 to this, which JSON readers of every language hold exactly.
inline constexpr std::uint64_t last_version = (1ull << 53) - 1;

/// Who may sign what. No key has two roles: the stop key lies on the hub and must be good for nothing else.
struct RootDocument {
  std::string product;
  std::uint64_t version = 1;
  std::int64_t expires_us = 0;  ///< since 1970 UTC, whole seconds
  RoleKeys root, publish, stop;
  bool operator==(const RootDocument&) const = default;
};

struct ManifestDocument {
  std::string product;
  std::string channel;
  std::uint64_t root = 1;  ///< version of the root that it was signed under
  std::uint64_t version = 1;
  std::int64_t issued_us = 0;
  std::int64_t expires_us = 0;
  std::string minimum_client;    ///< "0.1.0"
  std::uint64_t lifts_stop = 0;  ///< stops up to this version do not hold for it
  double percent = 100;          ///< of the machines; the canaries take it whatever it is
  std::optional<record::Tuning> tuning;
  std::optional<record::Tuning> tuning_override;
  bool operator==(const ManifestDocument&) const = default;
};

/// All that it can say: race locally, from that version of the manifest on.
struct StopDocument {
  std::string product;
  std::string channel;
  std::uint64_t root = 1;
  std::uint64_t version = 1;  ///< of the stops, not of the manifest
  std::int64_t issued_us = 0;
  std::uint64_t from = 1;
  bool operator==(const StopDocument&) const = default;
};

/// JSON, indented; the same value gives the same bytes. These are the bytes that are signed.
std::string print(const RootDocument& document);
std::string print(const ManifestDocument& document);
std::string print(const StopDocument& document);

/// Strict: `invalid` for an unknown key, a duplicate key, NaN, bytes that are no UTF-8, too deep, too large,
/// or a value out of its range; `incompatible` for another schema. Give them what open_envelope() gave.
Result<RootDocument> parse_root(std::string_view text, std::string_view name);
Result<ManifestDocument> parse_manifest(std::string_view text, std::string_view name);
Result<StopDocument> parse_stop(std::string_view text, std::string_view name);

/// `invalid` when a tuning names anything but variants: unknown keys, or names that look like paths, options
/// or code.
Status check_tuning_names(const record::Tuning& tuning, std::string_view name);

/// Microseconds since 1970 of "2026-03-01T12:00:00Z", exactly that form.
Result<std::int64_t> parse_utc(std::string_view text);

}  // namespace furlong::fleet
