#include "furlong/fleet/manifest/updater.h"

#include "furlong/fleet/manifest/state.h"

namespace furlong::fleet {
namespace {

namespace fs = std::filesystem;

VerifiedManifest to_files(const Standing& now) {
  VerifiedManifest manifest{.version = now.version, .tuning = {}, .tuning_override = {}, .note = now.note};
  // Printed from what was understood: nothing that the parser did not know reaches a worker.
  if (now.tuning != nullptr) manifest.tuning = record::print(*now.tuning);
  if (now.tuning_override != nullptr) manifest.tuning_override = record::print(*now.tuning_override);
  return manifest;
}

}  // namespace

fs::path manifest_state_file(const fs::path& data) { return data / "manifest-state.json"; }

Result<std::unique_ptr<ManifestUpdater>> ManifestUpdater::open(std::string_view pinned_root,
                                                               const Client& client, const fs::path& data,
                                                               Files& files, Clock& clock) {
  FURLONG_TRY(const Envelope envelope, parse_envelope(pinned_root, "the pinned root"));
  FURLONG_TRY(const auto pinned, open_pinned_root(envelope));
  std::unique_ptr<ManifestUpdater> updater(
      new ManifestUpdater(client, manifest_state_file(data), files, clock));
  updater->load(pinned);
  return updater;
}

void ManifestUpdater::load(const Signed<RootDocument>& pinned) {
  const auto keep = [&](Error error) {
    unreadable_ = std::move(error).with(
        "what was trusted cannot be read; put it right, or remove it to begin from the pinned root");
  };
  if (const Status fit = refuse_link(file_); !fit) return keep(fit.error());
  const auto text = files_.read(file_, 4 * largest_manifest_body);
  if (!text) {
    if (text.error().code() != Code::unavailable) return keep(text.error());
    trust_ = trust_from(pinned);
    return;
  }
  auto trust = parse_trust(*text, file_.string());
  if (!trust) return keep(trust.error());
  const Trust fresh = trust_from(pinned);
  const bool same = trust->pinned == fresh.pinned;
  const bool arrived = trust->root.envelope.payload == pinned.envelope.payload;
  trust_ = same || arrived ? *std::move(trust) : fresh;
  trust_->pinned = fresh.pinned;
}

Status ManifestUpdater::save(const Trust& trust) {
  FURLONG_CHECK(refuse_link(file_));
  return files_.write_atomic(file_, print(trust));
}

Result<VerifiedManifest> ManifestUpdater::verify(std::string_view text) {
  if (unreadable_) return *unreadable_;
  FURLONG_TRY(const ManifestBody body, parse_manifest_body(text, "the hub's manifest"));
  Trust next = *trust_;
  std::optional<Error> refused;
  const auto note = [&](const Status& status) {
    if (!status && !refused) refused = status.error();
  };
  note(take_roots(next, body.roots));
  if (body.stop) note(take_stop(next, *body.stop, client_));
  bool taken = false;
  if (body.manifest) note(take_manifest(next, *body.manifest, client_, clock_.wall_us(), taken));
  if (next != *trust_) {
    FURLONG_CHECK(save(next));
    trust_ = std::move(next);
  }
  if (refused) return *refused;
  return standing();
}

Result<VerifiedManifest> ManifestUpdater::standing() {
  if (unreadable_) return *unreadable_;
  return to_files(fleet::standing(*trust_, clock_.wall_us()));
}

Result<const Trust*> ManifestUpdater::trust() const {
  if (unreadable_) return *unreadable_;
  return &*trust_;
}

}  // namespace furlong::fleet
