#include "furlong/fleet/manifest/trust.h"

#include <algorithm>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

Status check_product(std::string_view what, std::string_view product, const RootDocument& root) {
  if (product == root.product) return {};
  return fail(Code::denied, "the {} is of another product: '{}', this fleet is '{}'", what, product,
              root.product);
}

Status check_channel(std::string_view what, std::string_view channel, const Client& client) {
  if (channel == client.channel) return {};
  return fail(Code::denied, "the {} is for another channel: '{}', this machine follows '{}'", what, channel,
              client.channel);
}

/// A document names the root that it was signed under: one from before a rotation is not replayed after it.
Status check_root(std::string_view what, std::uint64_t named, const RootDocument& root) {
  if (named == root.version) return {};
  return fail(Code::denied, "the {} was made under root {}, root {} is trusted here", what, named,
              root.version);
}

Status check_not_expired(std::string_view what, std::int64_t expires_us, std::int64_t now_us) {
  if (now_us < expires_us) return {};
  return fail(Code::denied, "the {} expired at {} (the clock here says {})", what, iso_time(expires_us),
              iso_time(now_us));
}

Status check_not_older(const SeenManifest& seen, const ManifestDocument& manifest, const Digest& payload) {
  if (manifest.version < seen.version)
    return fail(Code::denied, "manifest {} is older than manifest {}, which was seen already",
                manifest.version, seen.version);
  if (manifest.version == seen.version && payload != seen.payload)
    return fail(Code::denied, "manifest {} was seen with other bytes: one version has two contents",
                manifest.version);
  return {};
}

Result<RootDocument> open_root(const Envelope& envelope, const RoleKeys& by, std::string_view role_name) {
  FURLONG_TRY(const std::string_view payload, open_envelope(envelope, root_media_type, by, role_name));
  return parse_root(payload, "the root");
}

}  // namespace

Result<Signed<RootDocument>> open_pinned_root(const Envelope& envelope) {
  // Its keys are in it: so it is read before they can be asked. A person vouches for it.
  if (envelope.payload_type != root_media_type)
    return fail(Code::denied, "the envelope is a '{}', a root is wanted", one_line(envelope.payload_type));
  FURLONG_TRY(RootDocument document, parse_root(envelope.payload, "the root"));
  FURLONG_CHECK(open_envelope(envelope, root_media_type, document.root, "root"));
  return Signed<RootDocument>{envelope, std::move(document)};
}

Trust trust_from(const Signed<RootDocument>& pinned) {
  return {
      .pinned = blake2b_256(pinned.envelope.payload), .root = pinned, .seen = {}, .manifest = {}, .stop = {}};
}

Result<Signed<RootDocument>> open_next_root(const RootDocument& trusted, const Envelope& envelope) {
  FURLONG_TRY(RootDocument next, open_root(envelope, trusted.root, "root (of the root before)"));
  FURLONG_CHECK(open_envelope(envelope, root_media_type, next.root, "root (of the new root)"));
  FURLONG_CHECK(check_product("root", next.product, trusted));
  if (next.version != trusted.version + 1)
    return fail(Code::denied, "root {} does not follow root {}", next.version, trusted.version);
  return Signed<RootDocument>{envelope, std::move(next)};
}

Result<ManifestDocument> open_manifest(const RootDocument& root, const Envelope& envelope) {
  FURLONG_TRY(const std::string_view payload,
              open_envelope(envelope, manifest_media_type, root.publish, "publish"));
  FURLONG_TRY(ManifestDocument document, parse_manifest(payload, "the manifest"));
  FURLONG_CHECK(check_product("manifest", document.product, root));
  return document;
}

Result<StopDocument> open_stop(const RootDocument& root, const Envelope& envelope) {
  FURLONG_TRY(const std::string_view payload, open_envelope(envelope, stop_media_type, root.stop, "stop"));
  FURLONG_TRY(StopDocument document, parse_stop(payload, "the stop"));
  FURLONG_CHECK(check_product("stop", document.product, root));
  return document;
}

Status take_roots(Trust& trust, const std::vector<Envelope>& roots) {
  // A list begins anywhere in the chain. Where this machine stands is known by the trusted bytes, so that
  // nothing of a root is read before its signatures hold.
  const auto is_trusted = [&](const Envelope& root) { return root.payload == trust.root.envelope.payload; };
  auto next = std::ranges::find_if(roots, is_trusted);
  next = next == roots.end() ? roots.begin() : next + 1;
  for (; next != roots.end(); ++next) {
    FURLONG_TRY(trust.root, open_next_root(trust.root.document, *next));
    trust.seen = {};
    if (trust.manifest && !open_manifest(trust.root.document, trust.manifest->envelope))
      trust.manifest.reset();
    if (trust.stop && !open_stop(trust.root.document, trust.stop->envelope)) trust.stop.reset();
  }
  return {};
}

Status take_manifest(Trust& trust, const Envelope& envelope, const Client& client, std::int64_t now_us,
                     bool& taken) {
  taken = false;
  const RootDocument& root = trust.root.document;
  FURLONG_CHECK(check_not_expired("root", root.expires_us, now_us));
  FURLONG_TRY(ManifestDocument document, open_manifest(root, envelope));
  FURLONG_CHECK(check_channel("manifest", document.channel, client));
  FURLONG_CHECK(check_root("manifest", document.root, root));
  const Digest payload = blake2b_256(envelope.payload);
  FURLONG_CHECK(check_not_older(trust.seen, document, payload));
  FURLONG_CHECK(check_not_expired("manifest", document.expires_us, now_us));
  if (record::compare_drivers(client.version, document.minimum_client) < 0)
    return fail(Code::incompatible, "the manifest wants a client of version {}, this is {}",
                document.minimum_client, client.version);
  trust.seen = {.version = document.version, .payload = payload};
  if (!in_rollout(document, client)) return {};
  taken = true;
  trust.manifest = Signed<ManifestDocument>{envelope, std::move(document)};
  return {};
}

Status take_stop(Trust& trust, const Envelope& envelope, const Client& client) {
  // A root that has expired is no reason to let a stop go unheard: all it can do is let workers race.
  FURLONG_TRY(StopDocument document, open_stop(trust.root.document, envelope));
  FURLONG_CHECK(check_channel("stop", document.channel, client));
  // One of an older root holds while the stop keys are still the same, as it does where it was seen already.
  if (document.root > trust.root.document.version)
    FURLONG_CHECK(check_root("stop", document.root, trust.root.document));
  if (trust.stop && trust.stop->document.root >= document.root) {
    const StopDocument& had = trust.stop->document;
    if (document.root < had.root || document.version < had.version)
      return fail(Code::denied, "stop {} is older than stop {}, which was seen already", document.version,
                  had.version);
    if (document.version == had.version && envelope.payload != trust.stop->envelope.payload)
      return fail(Code::denied, "stop {} was seen with other bytes", document.version);
    if (document.version == had.version) return {};
  }
  trust.stop = Signed<StopDocument>{envelope, std::move(document)};
  return {};
}

bool in_rollout(const ManifestDocument& manifest, const Client& client) {
  if (client.canary || manifest.percent >= 100) return true;
  Hasher hasher;
  hasher.add_field("furlong rollout v1").add_field(manifest.product).add_field(manifest.channel);
  const Digest digest = hasher.add_field(client.machine).finish();
  const double place = static_cast<double>(load_le<std::uint64_t>(digest.bytes.data()) >> 11) * 0x1p-53;
  return place * 100 < manifest.percent;
}

Standing standing(const Trust& trust, std::int64_t now_us) {
  if (!trust.manifest) return {};
  const ManifestDocument& manifest = trust.manifest->document;
  Standing now{.version = std::to_string(manifest.version), .note = {}};
  if (trust.stop && manifest.version >= trust.stop->document.from &&
      manifest.lifts_stop < trust.stop->document.version) {
    now.note = fmt::format("stop {} says: race locally from manifest {} on", trust.stop->document.version,
                           trust.stop->document.from);
  } else if (now_us >= manifest.expires_us) {
    now.note = "the manifest expired at " + iso_time(manifest.expires_us);
  } else if (now_us >= trust.root.document.expires_us) {
    now.note = "the root expired at " + iso_time(trust.root.document.expires_us);
  } else {
    if (manifest.tuning) now.tuning = &*manifest.tuning;
    if (manifest.tuning_override) now.tuning_override = &*manifest.tuning_override;
  }
  return now;
}

}  // namespace furlong::fleet
