#include "furlong/fleet/manifest/publish.h"

#include <algorithm>
#include <cmath>

namespace furlong::fleet {
namespace {

constexpr std::int64_t second_us = 1'000'000;
constexpr double day_us = 86'400e6;

/// Documents hold whole seconds.
std::int64_t whole_seconds(std::int64_t us) { return us / second_us * second_us; }

std::optional<record::Tuning> changed(const std::optional<record::Tuning>* current,
                                      const TuningChange& change) {
  if (change.drop) return std::nullopt;
  if (change.replace) return change.replace;
  return current == nullptr ? std::nullopt : *current;
}

template <class Open>
auto open_under_any(const std::vector<RootDocument>& roots, const Envelope& envelope, Open open)
    -> decltype(open(roots.front(), envelope)) {
  for (auto root = roots.rbegin(); root != roots.rend(); ++root)
    if (auto document = open(*root, envelope)) return document;
  return open(roots.back(), envelope);  // its reason
}

}  // namespace

Result<ManifestDocument> next_manifest(const RootDocument& root, const ManifestDocument* current,
                                       const StopDocument* stop, const PublishRequest& request,
                                       std::int64_t now_us) {
  ManifestDocument next;
  next.product = root.product;
  next.root = root.version;
  next.channel = !request.channel.empty() ? request.channel
                 : current != nullptr     ? current->channel
                                          : "stable";
  next.version = current == nullptr ? 1 : current->version + 1;
  next.issued_us = whole_seconds(now_us);
  next.expires_us = whole_seconds(now_us + std::llround(request.expires_days * day_us));
  next.minimum_client = !request.minimum_client.empty() ? request.minimum_client
                        : current != nullptr            ? current->minimum_client
                                                        : "0.0.0";
  next.lifts_stop = current == nullptr ? 0 : current->lifts_stop;
  if (request.lift_stop && stop == nullptr)
    return fail(Code::invalid, "there is no stop that could be lifted");
  if (request.lift_stop) next.lifts_stop = std::max(next.lifts_stop, stop->version);
  next.percent = request.percent ? *request.percent : current != nullptr ? current->percent : 100;
  next.tuning = changed(current == nullptr ? nullptr : &current->tuning, request.tuning);
  next.tuning_override =
      changed(current == nullptr ? nullptr : &current->tuning_override, request.tuning_override);
  if (next.expires_us > root.expires_us)
    return fail(Code::invalid, "the manifest would outlive its root; fewer days, or a new root (rotate)");
  // What is signed is what every machine can read.
  FURLONG_TRY(const ManifestDocument again, parse_manifest(print(next), "the new manifest"));
  return again;
}

Result<StopDocument> next_stop(const RootDocument& root, const ManifestDocument& current,
                               const StopDocument* before, std::uint64_t from, std::int64_t now_us) {
  StopDocument next;
  next.product = root.product;
  next.channel = current.channel;
  next.root = root.version;
  next.version = std::max(before == nullptr ? 0 : before->version, current.lifts_stop) + 1;
  next.issued_us = whole_seconds(now_us);
  next.from = from == 0 ? current.version : from;
  return parse_stop(print(next), "the new stop");
}

Envelope envelope_of(const RootDocument& document) {
  return {.payload_type = std::string(root_media_type), .payload = print(document), .signatures = {}};
}
Envelope envelope_of(const ManifestDocument& document) {
  return {.payload_type = std::string(manifest_media_type), .payload = print(document), .signatures = {}};
}
Envelope envelope_of(const StopDocument& document) {
  return {.payload_type = std::string(stop_media_type), .payload = print(document), .signatures = {}};
}

Result<CheckedBody> check_body(const ManifestBody& body) {
  if (body.roots.empty()) return fail(Code::invalid, "no root is in it");
  FURLONG_TRY(const auto first, open_pinned_root(body.roots.front()));
  CheckedBody checked{.root = first, .manifest = {}, .stop = {}};
  std::vector<RootDocument> chain{first.document};
  for (std::size_t i = 1; i < body.roots.size(); ++i) {
    FURLONG_TRY(checked.root, open_next_root(chain.back(), body.roots[i]));
    chain.push_back(checked.root.document);
  }
  if (body.manifest) {
    FURLONG_TRY(checked.manifest, open_under_any(chain, *body.manifest, open_manifest));
  }
  if (body.stop) {
    FURLONG_TRY(const StopDocument stop, open_under_any(chain, *body.stop, open_stop));
    if (open_stop(chain.back(), *body.stop)) checked.stop = stop;
  }
  return checked;
}

}  // namespace furlong::fleet
