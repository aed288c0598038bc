#pragma once
// The next document of a fleet, for whoever signs one: a publisher, or the hub with its stop key. Pure
// functions.

#include <cstdint>
#include <optional>
#include <string>

#include "furlong/fleet/manifest/documents.h"
#include "furlong/fleet/manifest/trust.h"

namespace furlong::fleet {

/// How a part of the manifest goes on: carried over from the current one, dropped, or replaced.
struct TuningChange {
  bool drop = false;
  std::optional<record::Tuning> replace;
};

struct PublishRequest {
  std::string channel;  ///< empty: the current manifest's, else "stable"
  TuningChange tuning, tuning_override;
  std::optional<double> percent;  ///< empty: the current manifest's, else 100
  double expires_days = 30;
  std::string minimum_client;  ///< empty: the current manifest's, else "0.0.0"
  bool lift_stop = false;      ///< the stop that stands does not hold for the new manifest
};

/// One version after `current` (nullptr: the first), under `root`; `invalid` when the result is none that
/// parse_manifest would take.
Result<ManifestDocument> next_manifest(const RootDocument& root, const ManifestDocument* current,
                                       const StopDocument* stop, const PublishRequest& request,
                                       std::int64_t now_us);
/// "Race locally from `from` on" (0: from the current manifest on).
Result<StopDocument> next_stop(const RootDocument& root, const ManifestDocument& current,
                               const StopDocument* before, std::uint64_t from, std::int64_t now_us);
/// The bytes of a document in an envelope that nobody has signed yet.
Envelope envelope_of(const RootDocument& document);
Envelope envelope_of(const ManifestDocument& document);
Envelope envelope_of(const StopDocument& document);

/// A body whose chain of roots and whose documents hold, without a machine's view: no clock, no channel.
struct CheckedBody {
  Signed<RootDocument> root;                 ///< the last of the chain
  std::optional<ManifestDocument> manifest;  ///< under the newest root of the chain that its signers are in
  std::optional<StopDocument>
      stop;  ///< empty also when the newest root has other stop keys: it holds no more
};
/// The first root is taken on its own signature: it is the caller's own.
Result<CheckedBody> check_body(const ManifestBody& body);

}  // namespace furlong::fleet
