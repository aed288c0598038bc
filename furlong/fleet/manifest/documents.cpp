#include "furlong/fleet/manifest/documents.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/internal/schema.h"

namespace furlong::fleet {
namespace {

constexpr int document_schema = 1;
constexpr JsonLimits limits{.max_bytes = largest_manifest_body, .max_depth = 16};
constexpr JsonLimits small_limits{.max_bytes = 64u << 10, .max_depth = 6};
constexpr std::size_t longest_name = 64;

/// Products, channels, variants: letters, digits and a few marks, so that none is a path, an option or code.
bool is_name(std::string_view text, std::string_view marks) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && plain(text.front()) && std::ranges::all_of(text, [&](char c) {
    return plain(c) || marks.find(c) != std::string_view::npos;
  });
}

bool is_version_text(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() == 3 && std::ranges::all_of(parts, [](const std::string& part) {
           return !part.empty() && part.size() <= 6 &&
                  part.find_first_not_of("0123456789") == std::string::npos;
         });
}

void name(JsonObject& object, std::string_view key, std::string& into) {
  object.text(key, into);
  object.require({key});
  if (!is_name(into, "-_.") || into.size() > longest_name)
    object.keep(fail(Code::invalid, "{}: 1 to {} letters, digits, '-', '_' and '.' are wanted",
                     object.path(key), longest_name));
}

void time(JsonObject& object, std::string_view key, std::int64_t& into) {
  std::string text;
  object.text(key, text);
  object.require({key});
  if (const auto read = parse_utc(text))
    into = *read;
  else
    object.keep(Error(read.error()).with(object.path(key)));
}

void version(JsonObject& object, std::string_view key, std::uint64_t& into) {
  object.integer(key, into, std::uint64_t{1}, last_version);
  object.require({key});
}

// --- root

Json role_to_json(const RoleKeys& role) {
  Json keys = Json::array();
  for (const PublicKey& key : role.keys) keys.push_back(key.hex());
  return Json{{"threshold", role.threshold}, {"keys", std::move(keys)}};
}

Status read_role(JsonObject& roles, std::string_view role_name, RoleKeys& role) {
  const Json* json = roles.object(role_name);
  roles.require({role_name});
  FURLONG_CHECK(roles.status());
  JsonObject object(*json, roles.path(role_name));
  std::vector<std::string> keys;
  object.integer("threshold", role.threshold, 1, static_cast<int>(most_signatures));
  object.texts("keys", keys);
  object.require({"threshold", "keys"});
  FURLONG_CHECK(object.strict());
  if (keys.size() > most_signatures)
    return fail(Code::invalid, "{}: {} keys, {} are the most", object.path("keys"), keys.size(),
                most_signatures);
  for (const std::string& text : keys) {
    FURLONG_TRY(const PublicKey key, PublicKey::parse(text));
    if (key.hex() != text)
      return fail(Code::invalid, "{}: lower-case digits are wanted", object.path("keys"));
    role.keys.push_back(key);
  }
  if (static_cast<std::size_t>(role.threshold) > role.keys.size())
    return fail(Code::invalid, "{}: threshold {} with {} keys can never be met", roles.path(role_name),
                role.threshold, role.keys.size());
  return {};
}

/// By id: two keys with one id could not be told apart in an envelope.
Status check_key_use(const RootDocument& document, std::string_view where) {
  std::set<std::string> ids;
  for (const RoleKeys* role : {&document.root, &document.publish, &document.stop})
    for (const PublicKey& key : role->keys)
      if (!ids.insert(key.id()).second)
        return fail(Code::invalid, "{}: key {} stands there twice: each key has one role", where, key.id());
  return {};
}

// --- manifest

Status check_names(std::string_view text, std::string_view what, std::string_view where) {
  if (is_name(text, "-_.+=,:") && text.size() <= 200) return {};
  return fail(Code::invalid, "{}: '{}' is no name of a {}", where, one_line(text).substr(0, 60), what);
}

Status no_extra(std::string_view extra, std::string_view where) {
  if (extra.empty()) return {};
  return fail(Code::invalid, "{}: a tuning can only name variants; unknown: {}", where,
              one_line(extra).substr(0, 120));
}

Status check_row(const record::TuningRow& row, std::string_view where) {
  FURLONG_CHECK(no_extra(row.extra, where));
  FURLONG_CHECK(check_names(row.program, "program", where));
  if (!row.variant.empty()) FURLONG_CHECK(check_names(row.variant, "variant", where));
  for (const std::string& candidate : row.candidates) FURLONG_CHECK(check_names(candidate, "variant", where));
  for (const auto& size : row.sizes) {
    FURLONG_CHECK(no_extra(size.extra, where));
    FURLONG_CHECK(check_names(size.variant, "variant", where));
    for (const auto& [variant, gain] : size.gains_pct) FURLONG_CHECK(check_names(variant, "variant", where));
  }
  return {};
}

Status read_tuning(const Json& document, JsonObject& object, std::string_view key,
                   std::optional<record::Tuning>& into) {
  const Json* json = object.object(key);
  FURLONG_CHECK(object.status());
  const std::string where = object.path(key);
  if (json == nullptr && document.contains(key))
    return fail(Code::invalid, "{}: null: an object, or nothing at all, is wanted", where);
  if (json == nullptr) return {};
  FURLONG_TRY(into, record::tuning_from_json(*json, where));
  return check_tuning_names(*into, where);
}

Status read_rollout(JsonObject& object, double& percent) {
  const Json* json = object.object("rollout");
  object.require({"rollout"});
  FURLONG_CHECK(object.status());
  JsonObject rollout(*json, object.path("rollout"));
  rollout.number("percent", percent, 0, 100);
  rollout.require({"percent"});
  return rollout.strict();
}

}  // namespace

Result<std::int64_t> parse_utc(std::string_view text) {
  using namespace std::chrono;
  const Error bad = fail(Code::invalid, "a time such as 2026-03-01T12:00:00Z is wanted");
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != shape.size()) return bad;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i]) return bad;
  const auto part = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const year_month_day date(year(part(0, 4)), month(static_cast<unsigned>(part(5, 2))),
                            day(static_cast<unsigned>(part(8, 2))));
  if (!date.ok() || part(0, 4) < 1970 || part(11, 2) > 23 || part(14, 2) > 59 || part(17, 2) > 59) return bad;
  const auto when = sys_days(date) + hours(part(11, 2)) + minutes(part(14, 2)) + seconds(part(17, 2));
  return duration_cast<microseconds>(when.time_since_epoch()).count();
}

Status check_tuning_names(const record::Tuning& tuning, std::string_view where) {
  FURLONG_CHECK(no_extra(tuning.extra, where));
  for (const auto& card : tuning.cards) {
    const std::string place = fmt::format("{}.cards.{}", where, one_line(card.key));
    FURLONG_CHECK(no_extra(card.extra, place));
    for (const auto& row : card.rows) FURLONG_CHECK(check_row(row, place));
  }
  return {};
}

std::string print(const RootDocument& document) {
  return json_pretty(Json{{"schema", document_schema},
                          {"product", document.product},
                          {"version", document.version},
                          {"expires", iso_time(document.expires_us)},
                          {"roles",
                           {{"root", role_to_json(document.root)},
                            {"publish", role_to_json(document.publish)},
                            {"stop", role_to_json(document.stop)}}}});
}

Result<RootDocument> parse_root(std::string_view text, std::string_view where) {
  FURLONG_TRY(const Json json, json_parse(text, where, small_limits));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, document_schema, where));
  RootDocument document;
  name(object, "product", document.product);
  version(object, "version", document.version);
  time(object, "expires", document.expires_us);
  const Json* roles = object.object("roles");
  object.require({"roles"});
  FURLONG_CHECK(object.strict());
  JsonObject table(*roles, object.path("roles"));
  FURLONG_CHECK(read_role(table, "root", document.root));
  FURLONG_CHECK(read_role(table, "publish", document.publish));
  FURLONG_CHECK(read_role(table, "stop", document.stop));
  FURLONG_CHECK(table.strict());
  FURLONG_CHECK(check_key_use(document, where));
  return document;
}

std::string print(const ManifestDocument& document) {
  Json json{{"schema", document_schema},
            {"product", document.product},
            {"channel", document.channel},
            {"root", document.root},
            {"version", document.version},
            {"issued", iso_time(document.issued_us)},
            {"expires", iso_time(document.expires_us)},
            {"minimum_client", document.minimum_client},
            {"lifts_stop", document.lifts_stop},
            {"rollout", {{"percent", document.percent}}}};
  if (document.tuning) json["tuning"] = record::tuning_to_json(*document.tuning);
  if (document.tuning_override) json["override"] = record::tuning_to_json(*document.tuning_override);
  return json_pretty(json);
}

Result<ManifestDocument> parse_manifest(std::string_view text, std::string_view where) {
  FURLONG_TRY(const Json json, json_parse(text, where, limits));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, document_schema, where));
  ManifestDocument document;
  name(object, "product", document.product);
  name(object, "channel", document.channel);
  version(object, "root", document.root);
  version(object, "version", document.version);
  time(object, "issued", document.issued_us);
  time(object, "expires", document.expires_us);
  object.text("minimum_client", document.minimum_client);
  object.integer("lifts_stop", document.lifts_stop, std::uint64_t{0}, last_version);
  object.require({"minimum_client", "lifts_stop"});
  FURLONG_CHECK(read_rollout(object, document.percent));
  FURLONG_CHECK(read_tuning(json, object, "tuning", document.tuning));
  FURLONG_CHECK(read_tuning(json, object, "override", document.tuning_override));
  FURLONG_CHECK(object.strict());
  if (!is_version_text(document.minimum_client))
    return fail(Code::invalid, "{}.minimum_client: a version such as 0.1.0 is wanted", where);
  if (document.issued_us >= document.expires_us)
    return fail(Code::invalid, "{}: it expires before it is issued", where);
  return document;
}

std::string print(const StopDocument& document) {
  return json_pretty(Json{{"schema", document_schema},
                          {"product", document.product},
                          {"channel", document.channel},
                          {"root", document.root},
                          {"version", document.version},
                          {"issued", iso_time(document.issued_us)},
                          {"race_locally_from", document.from}});
}

Result<StopDocument> parse_stop(std::string_view text, std::string_view where) {
  FURLONG_TRY(const Json json, json_parse(text, where, small_limits));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, document_schema, where));
  StopDocument document;
  name(object, "product", document.product);
  name(object, "channel", document.channel);
  version(object, "root", document.root);
  version(object, "version", document.version);
  time(object, "issued", document.issued_us);
  version(object, "race_locally_from", document.from);
  FURLONG_CHECK(object.strict());
  return document;
}

}  // namespace furlong::fleet
