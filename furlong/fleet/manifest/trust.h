#pragma once
// What a machine believes of the fleet's signed documents, and what follows from it. Pure functions over
// value types; safe from any thread. Keeping it on disk is the updater's (updater.h).

#include <optional>
#include <string>
#include <string_view>

#include "furlong/base/hash.h"
#include "furlong/fleet/manifest/documents.h"
#include "furlong/fleet/manifest/envelope.h"

namespace furlong::fleet {

/// Who asks.
struct Client {
  std::string machine;  ///< fingerprint of its key; decides on the rollout
  std::string channel;
  bool canary = false;
  std::string version;  ///< "0.1.0"
};

/// A document, and the envelope that it came in.
template <class Document>
struct Signed {
  Envelope envelope;
  Document document;
  bool operator==(const Signed&) const = default;
};

/// The highest manifest that was verified under the root that is trusted now.
struct SeenManifest {
  std::uint64_t version = 0;
  Digest payload;
  bool operator==(const SeenManifest&) const = default;
};

/// What is remembered between two looks. No time in it is the local clock's.
struct Trust {
  Digest pinned;  ///< of the payload of the root that a person put there
  Signed<RootDocument> root;
  SeenManifest seen;
  std::optional<Signed<ManifestDocument>> manifest;  ///< in use
  std::optional<Signed<StopDocument>> stop;          ///< the newest; holds until a manifest lifts it
  bool operator==(const Trust&) const = default;
};

/// The root that a person pins: signed by its own root keys. `denied`, or what parse_root says.
Result<Signed<RootDocument>> open_pinned_root(const Envelope& envelope);
Trust trust_from(const Signed<RootDocument>& pinned);

/// The next root of the chain: signed by the root keys of `trusted` and by its own, one version later, of the
/// same product.
Result<Signed<RootDocument>> open_next_root(const RootDocument& trusted, const Envelope& envelope);
/// The signature first, then the content; for a publisher as well as for a machine. Looks at no clock.
Result<ManifestDocument> open_manifest(const RootDocument& root, const Envelope& envelope);
Result<StopDocument> open_stop(const RootDocument& root, const Envelope& envelope);

/// Follows the roots of a body, from the trusted one on where it is among them. A new root forgets the
/// highest version seen, and drops the manifest and the stop that its keys have not signed. What was good
/// before an error stays taken.
Status take_roots(Trust& trust, const std::vector<Envelope>& roots);
/// `incompatible`: the client is older than the manifest wants; `denied`: anything else that is refused, with
/// its reason. `taken` false: verified, but the rollout leaves this machine with what it had.
Status take_manifest(Trust& trust, const Envelope& envelope, const Client& client, std::int64_t now_us,
                     bool& taken);
Status take_stop(Trust& trust, const Envelope& envelope, const Client& client);

/// Whether a rollout of so many percent has reached the machine: by a hash of product, channel and machine,
/// so that a larger percentage has all machines of a smaller one.
bool in_rollout(const ManifestDocument& manifest, const Client& client);

/// What is to be done now.
struct Standing {
  std::string version;  ///< of the manifest in use; empty: none
  const record::Tuning* tuning = nullptr;
  const record::Tuning* tuning_override = nullptr;
  std::string note;  ///< why there is no tuning although there is a manifest; may be empty
};
/// Points into `trust`. Past the manifest's or the root's expiry, and under a stop, nothing is pinned:
/// workers race in full. The clock is asked anew each time, so that one that jumped and came back does no
/// harm.
Standing standing(const Trust& trust, std::int64_t now_us);

}  // namespace furlong::fleet
