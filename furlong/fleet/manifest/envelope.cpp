#include "furlong/fleet/manifest/envelope.h"

#include <algorithm>

#include "furlong/base/base64.h"
#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/fleet/internal/schema.h"
#include "furlong/fleet/record_batch.h"

namespace furlong::fleet {
namespace {

constexpr int body_schema = 1;
// A body holds an array of envelopes, which hold an array of signatures: no deeper.
constexpr JsonLimits limits{.max_bytes = largest_manifest_body, .max_depth = 6};

bool is_key_id(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<Envelope::Entry> signature_from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  Envelope::Entry entry;
  std::string text;
  object.text("keyid", entry.key_id);
  object.text("sig", text);
  object.require({"keyid", "sig"});
  FURLONG_CHECK(object.strict());
  if (!is_key_id(entry.key_id))
    return fail(Code::invalid, "{}: keyid: 16 lower-case hexadecimal digits are wanted", where);
  FURLONG_TRY(const std::string bytes, from_base64(text));
  if (bytes.size() != entry.signature.size())
    return fail(Code::invalid, "{}: sig: a signature has {} bytes, not {}", where, entry.signature.size(),
                bytes.size());
  std::copy(bytes.begin(), bytes.end(), entry.signature.begin());
  return entry;
}

}  // namespace

void add_signature(Envelope& envelope, const KeyPair& key) {
  const std::string id = key.public_key.id();
  std::erase_if(envelope.signatures, [&](const auto& entry) { return entry.key_id == id; });
  envelope.signatures.push_back(
      {.key_id = id,
       .signature = sign(as_bytes(signed_bytes(envelope.payload_type, envelope.payload)), key)});
}

std::vector<PublicKey> signers(const Envelope& envelope, const RoleKeys& role) {
  const std::string message = signed_bytes(envelope.payload_type, envelope.payload);
  std::vector<PublicKey> found;
  for (const PublicKey& key : role.keys) {
    const std::string id = key.id();
    const auto holds = [&](const Envelope::Entry& entry) {
      return entry.key_id == id && verify(as_bytes(message), entry.signature, key).has_value();
    };
    if (std::ranges::any_of(envelope.signatures, holds) && std::ranges::find(found, key) == found.end())
      found.push_back(key);
  }
  return found;
}

Result<std::string_view> open_envelope(const Envelope& envelope, std::string_view type, const RoleKeys& role,
                                       std::string_view role_name) {
  if (envelope.payload_type != type)
    return fail(Code::denied, "the envelope is a '{}', a '{}' is wanted", one_line(envelope.payload_type),
                type);
  const auto good = signers(envelope, role);
  if (role.threshold >= 1 && good.size() >= static_cast<std::size_t>(role.threshold))
    return std::string_view(envelope.payload);
  std::vector<std::string> unknown, wrong;
  for (const auto& entry : envelope.signatures) {
    const auto is = [&](const PublicKey& key) { return key.id() == entry.key_id; };
    if (std::ranges::none_of(role.keys, is))
      unknown.push_back(entry.key_id);
    else if (std::ranges::none_of(good, is))
      wrong.push_back(entry.key_id);
  }
  std::string why = fmt::format("too few signatures: {} of {} keys of the role {} signed these bytes",
                                good.size(), role.threshold, role_name);
  if (!wrong.empty())
    why += fmt::format("; the signature of {} is wrong: the bytes were changed, or another key made it",
                       join(wrong, ", "));
  if (!unknown.empty()) why += fmt::format("; {} is no key of that role", join(unknown, ", "));
  return Error(Code::denied, why);
}

Json envelope_to_json(const Envelope& envelope) {
  Json signatures = Json::array();
  for (const auto& entry : envelope.signatures)
    signatures.push_back(Json{{"keyid", entry.key_id}, {"sig", to_base64(entry.signature)}});
  return Json{{"payloadType", envelope.payload_type},
              {"payload", to_base64(as_bytes(envelope.payload))},
              {"signatures", std::move(signatures)}};
}

Result<Envelope> envelope_from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  Envelope envelope;
  std::string payload;
  object.text("payloadType", envelope.payload_type);
  object.text("payload", payload);
  const Json* signatures = object.array("signatures");
  object.require({"payloadType", "payload", "signatures"});
  FURLONG_CHECK(object.strict());
  auto bytes = from_base64(payload);
  if (!bytes) return Error(std::move(bytes).error()).with(where + ".payload");
  envelope.payload = *std::move(bytes);
  if (signatures->size() > most_signatures)
    return fail(Code::invalid, "{}: {} signatures, {} are the most", where, signatures->size(),
                most_signatures);
  for (const Json& each : *signatures) {
    FURLONG_TRY(auto entry, signature_from_json(each, object.path("signatures")));
    envelope.signatures.push_back(std::move(entry));
  }
  return envelope;
}

std::string print(const Envelope& envelope) { return json_pretty(envelope_to_json(envelope)); }

Result<Envelope> parse_envelope(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json json, json_parse(text, name, limits));
  return envelope_from_json(json, std::string(name));
}

std::string print(const ManifestBody& body) {
  Json json{{"schema", body_schema}};
  if (!body.roots.empty()) {
    Json roots = Json::array();
    for (const Envelope& root : body.roots) roots.push_back(envelope_to_json(root));
    json["roots"] = std::move(roots);
  }
  if (body.manifest) json["manifest"] = envelope_to_json(*body.manifest);
  if (body.stop) json["stop"] = envelope_to_json(*body.stop);
  return json_pretty(json);
}

Result<ManifestBody> parse_manifest_body(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json json, json_parse(text, name, limits));
  JsonObject object(json, std::string(name));
  FURLONG_CHECK(expect_schema(object, body_schema, name));
  const Json* roots = object.array("roots");
  const Json* manifest = object.object("manifest");
  const Json* stop = object.object("stop");
  FURLONG_CHECK(object.strict());
  ManifestBody body;
  if (roots != nullptr) {
    if (roots->size() > most_roots)
      return fail(Code::invalid, "{}: {} roots, {} are the most", name, roots->size(), most_roots);
    for (const Json& each : *roots) {
      FURLONG_TRY(auto root, envelope_from_json(each, object.path("roots")));
      body.roots.push_back(std::move(root));
    }
  }
  if (manifest != nullptr) {
    FURLONG_TRY(body.manifest, envelope_from_json(*manifest, object.path("manifest")));
  }
  if (stop != nullptr) {
    FURLONG_TRY(body.stop, envelope_from_json(*stop, object.path("stop")));
  }
  if (body.roots.empty() && !body.manifest && !body.stop)
    return fail(Code::invalid, "{}: neither a manifest nor a root nor a stop is in it", name);
  return body;
}

}  // namespace furlong::fleet
