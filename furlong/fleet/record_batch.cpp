#include "furlong/fleet/record_batch.h"

#include <set>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/fleet/internal/schema.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_header_bytes = 4096;
constexpr std::size_t most_version_bytes = 64;
constexpr JsonLimits reply_limits{.max_bytes = 8u << 20, .max_depth = 8};

bool is_fingerprint(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status read_header(std::string_view line, RecordBatch& batch, std::size_t& count) {
  constexpr std::string_view where = "batch line 1";
  FURLONG_TRY(const Json json, json_parse(line, where, {.max_bytes = most_header_bytes, .max_depth = 4}));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, batch_schema, where));
  std::uint64_t records = 0;
  object.text("batch", batch.id);
  object.text("machine", batch.machine);
  object.integer("records", records);
  object.text("agent", batch.agent);
  object.text("manifest", batch.manifest);
  object.boolean("canary", batch.canary);
  object.require({"batch", "machine", "records"});
  FURLONG_CHECK(object.status());
  for (const std::string* words : {&batch.agent, &batch.manifest})
    if (words->size() > most_version_bytes || one_line(*words) != *words)
      return fail(Code::invalid, "{}: agent, manifest: no version", where);
  if (!record::is_record_id(batch.id)) return fail(Code::invalid, "{}: batch: no UUIDv7", where);
  if (!is_fingerprint(batch.machine))
    return fail(Code::invalid, "{}: machine: 16 lower-case hexadecimal digits are wanted", where);
  count = records;
  return {};
}

}  // namespace

Result<std::string> print(const RecordBatch& batch) {
  Json header{{"schema", batch_schema},
              {"batch", batch.id},
              {"machine", batch.machine},
              {"records", batch.lines.size()}};
  if (!batch.agent.empty()) header["agent"] = batch.agent;
  if (!batch.manifest.empty()) header["manifest"] = batch.manifest;
  if (batch.canary) header["canary"] = true;
  std::string body = json_line(header) + "\n";
  for (const std::string& line : batch.lines) {
    if (line.empty() || line.find('\n') != std::string::npos)
      return fail(Code::internal, "a record of a batch must be one line");
    body += line;
    body += '\n';
  }
  return body;
}

Result<RecordBatch> parse_record_batch(std::string_view body, const BatchLimits& limits) {
  if (body.size() > limits.bytes)
    return fail(Code::exhausted, "the batch has {} bytes, {} are the most", body.size(), limits.bytes);
  RecordBatch batch;
  std::size_t count = 0;
  std::size_t begin = 0;
  for (std::size_t number = 1; begin < body.size(); ++number) {
    const std::size_t end = body.find('\n', begin);
    if (end == std::string_view::npos)
      return fail(Code::invalid, "batch line {} at byte {} is torn: it has no end", number, begin);
    const std::string_view line = body.substr(begin, end - begin);
    if (line.size() > limits.line_bytes)
      return fail(Code::exhausted, "batch line {} has {} bytes, {} are the most", number, line.size(),
                  limits.line_bytes);
    if (number == 1) {
      FURLONG_CHECK(read_header(line, batch, count));
      if (count > limits.records)
        return fail(Code::exhausted, "the batch has {} records, {} are the most", count, limits.records);
    } else if (line.empty()) {
      return fail(Code::invalid, "batch line {} at byte {} is empty", number, begin);
    } else if (batch.lines.size() == count) {
      return fail(Code::invalid, "batch line {} at byte {}: the header announces only {} records", number,
                  begin, count);
    } else {
      batch.lines.emplace_back(line);
    }
    begin = end + 1;
  }
  if (body.empty()) return fail(Code::invalid, "the batch is empty");
  if (batch.lines.size() != count)
    return fail(Code::invalid, "the batch ends after {} records, its header announces {}", batch.lines.size(),
                count);
  return batch;
}

std::string signed_bytes(std::string_view media_type, std::string_view body) {
  return fmt::format("DSSEv1 {} {} {} {}", media_type.size(), media_type, body.size(), body);
}

std::string sign_body(std::string_view media_type, std::string_view body, const KeyPair& key) {
  return to_hex(sign(as_bytes(signed_bytes(media_type, body)), key));
}

Status verify_body(std::string_view media_type, std::string_view body, std::string_view signature_hex,
                   const PublicKey& key) {
  const auto bytes = from_hex(signature_hex);
  Signature signature{};
  if (!bytes || bytes->size() != signature.size())
    return fail(Code::denied, "the signature is not {} hexadecimal digits", 2 * signature.size());
  std::copy(bytes->begin(), bytes->end(), signature.begin());
  return verify(as_bytes(signed_bytes(media_type, body)), signature, key);
}

std::string print(const BatchReply& reply) {
  Json refused = Json::array();
  for (const auto& each : reply.refused) refused.push_back(Json{{"id", each.id}, {"why", each.why}});
  return json_line(Json{{"schema", batch_schema},
                        {"accepted", reply.accepted},
                        {"duplicate", reply.duplicate},
                        {"refused", refused}});
}

Result<BatchReply> parse_batch_reply(std::string_view text) {
  constexpr std::string_view where = "the hub's reply";
  FURLONG_TRY(const Json json, json_parse(text, where, reply_limits));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, batch_schema, where));
  BatchReply reply;
  object.texts("accepted", reply.accepted);
  object.texts("duplicate", reply.duplicate);
  const Json* refused = object.array("refused");
  object.require({"accepted", "duplicate", "refused"});
  FURLONG_CHECK(object.status());
  for (const Json& each : *refused) {
    JsonObject one(each, object.path("refused"));
    BatchReply::Refused entry;
    one.text("id", entry.id);
    one.text("why", entry.why);
    one.require({"id", "why"});
    FURLONG_CHECK(one.status());
    reply.refused.push_back(std::move(entry));
  }
  std::set<std::string_view> ids;
  bool twice = false;
  for (const auto& id : reply.accepted) twice |= !ids.insert(id).second;
  for (const auto& id : reply.duplicate) twice |= !ids.insert(id).second;
  for (const auto& each : reply.refused) twice |= !ids.insert(each.id).second;
  if (twice) return fail(Code::invalid, "{}: one record has two fates", where);
  return reply;
}

std::string print(const EnrolRequest& request) {
  return json_line(Json{{"schema", batch_schema}, {"token", request.token}, {"key", request.key.hex()}});
}

Result<EnrolRequest> parse_enrol_request(std::string_view text) {
  constexpr std::string_view where = "the enrolment";
  FURLONG_TRY(const Json json, json_parse(text, where, {.max_bytes = most_header_bytes, .max_depth = 4}));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, batch_schema, where));
  EnrolRequest request;
  std::string key;
  object.text("token", request.token);
  object.text("key", key);
  object.require({"token", "key"});
  FURLONG_CHECK(object.status());
  FURLONG_TRY(request.key, PublicKey::parse(key));
  return request;
}

Result<std::string> parse_enrol_reply(std::string_view text) {
  constexpr std::string_view where = "the hub's reply";
  FURLONG_TRY(const Json json, json_parse(text, where, reply_limits));
  JsonObject object(json, std::string(where));
  FURLONG_CHECK(expect_schema(object, batch_schema, where));
  std::string machine;
  object.text("machine", machine);
  object.require({"machine"});
  FURLONG_CHECK(object.status());
  return machine;
}

}  // namespace furlong::fleet
