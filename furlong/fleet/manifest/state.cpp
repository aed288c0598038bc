#include "furlong/fleet/manifest/state.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/fleet/internal/schema.h"

namespace furlong::fleet {
namespace {

constexpr int state_schema = 1;
constexpr JsonLimits limits{.max_bytes = 2 * largest_manifest_body, .max_depth = 6};

Result<Digest> digest_of(JsonObject& object, std::string_view key) {
  std::string text;
  object.text(key, text);
  object.require({key});
  FURLONG_CHECK(object.status());
  FURLONG_TRY(const Digest digest, Digest::parse(text));
  if (digest.hex() != text) return fail(Code::invalid, "{}: lower-case digits are wanted", object.path(key));
  return digest;
}

Result<SeenManifest> read_seen(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  SeenManifest seen;
  object.integer("version", seen.version, std::uint64_t{0}, last_version);
  object.require({"version"});
  FURLONG_TRY(seen.payload, digest_of(object, "payload"));
  FURLONG_CHECK(object.strict());
  return seen;
}

Result<Trust> read(const Json& json, std::string_view name) {
  JsonObject object(json, std::string(name));
  Trust trust;
  FURLONG_CHECK(expect_schema(object, state_schema, name));
  FURLONG_TRY(trust.pinned, digest_of(object, "pinned"));
  const Json* root = object.object("root");
  const Json* seen = object.object("seen");
  const Json* manifest = object.object("manifest");
  const Json* stop = object.object("stop");
  object.require({"root", "seen"});
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(const Envelope envelope, envelope_from_json(*root, object.path("root")));
  FURLONG_TRY(trust.root, open_pinned_root(envelope));
  FURLONG_TRY(trust.seen, read_seen(*seen, object.path("seen")));
  if (manifest != nullptr) {
    FURLONG_TRY(auto signed_by, envelope_from_json(*manifest, object.path("manifest")));
    FURLONG_TRY(auto document, open_manifest(trust.root.document, signed_by));
    trust.manifest = Signed<ManifestDocument>{std::move(signed_by), std::move(document)};
  }
  if (stop != nullptr) {
    FURLONG_TRY(auto signed_by, envelope_from_json(*stop, object.path("stop")));
    FURLONG_TRY(auto document, open_stop(trust.root.document, signed_by));
    trust.stop = Signed<StopDocument>{std::move(signed_by), std::move(document)};
  }
  return trust;
}

}  // namespace

std::string print(const Trust& trust) {
  Json json{{"schema", state_schema},
            {"pinned", trust.pinned.hex()},
            {"root", envelope_to_json(trust.root.envelope)},
            {"seen", {{"version", trust.seen.version}, {"payload", trust.seen.payload.hex()}}}};
  if (trust.manifest) json["manifest"] = envelope_to_json(trust.manifest->envelope);
  if (trust.stop) json["stop"] = envelope_to_json(trust.stop->envelope);
  return json_pretty(json);
}

Result<Trust> parse_trust(std::string_view text, std::string_view name) {
  const auto json = json_parse(text, name, limits);
  if (!json) return Error(Code::corrupt, json.error().text());
  auto trust = read(*json, name);
  if (trust || trust.error().code() == Code::incompatible) return trust;
  return Error(Code::corrupt, trust.error().text());
}

}  // namespace furlong::fleet
