#include "furlong/fleet/hub/reply.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t longest_message = 1000;
constexpr double store_retry_s = 5;

}  // namespace

Document make_document(std::string body) {
  std::string tag = '"' + blake2b_256(body).brief() + '"';
  return {std::move(body), std::move(tag)};
}

Document make_document(const Json& json) { return make_document(json_line(json) + "\n"); }

bool has_tag(const ServerRequest& request, std::string_view tag) {
  for (const std::string& each : split(request.header("if-none-match"), ',')) {
    std::string_view known = trim(each);
    if (known == "*") return true;
    if (known.starts_with("W/")) known.remove_prefix(2);
    if (known == tag) return true;
  }
  return false;
}

ServerReply answer(const ServerRequest& request, const Document& document, std::string_view content_type) {
  ServerReply reply;
  reply.content_type = content_type;
  reply.headers = {{"ETag", document.tag}, {"Cache-Control", "no-cache"}};
  if (has_tag(request, document.tag))
    reply.status = 304;
  else
    reply.body = document.body;
  return reply;
}

ServerReply error_reply(int status, Code code, std::string_view message) {
  std::string text(message.substr(0, longest_message));
  if (!is_valid_utf8(text))
    std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  ServerReply reply{.status = status};
  reply.headers = {{"Cache-Control", "no-store"}};
  reply.body =
      json_line(Json{{"schema", 1}, {"error", {{"code", code_name(code)}, {"message", one_line(text)}}}}) +
      "\n";
  return reply;
}

ServerReply busy_reply(int status, double retry_s, Code code, std::string_view message) {
  ServerReply reply = error_reply(status, code, message);
  reply.headers.emplace_back("Retry-After",
                             fmt::format("{:.0f}", std::ceil(std::clamp(retry_s, 1.0, 3600.0))));
  return reply;
}

std::string_view store_state(Code code) {
  switch (code) {
    case Code::unavailable:
      return "away";
    case Code::exhausted:
      return "full";
    case Code::denied:
      return "read-only";
    case Code::timeout:
      return "too slow, or held by another writer";
    case Code::corrupt:
      return "damaged";
    case Code::incompatible:
      return "of another version";
    default:
      return "failing";
  }
}

ServerReply store_reply(const Error& error) {
  return busy_reply(503, store_retry_s, error.code(),
                    fmt::format("the hub's store is {}: {}; nothing was acknowledged, send again later",
                                store_state(error.code()), error.text()));
}

void put_time(Json& object, const char* key, std::int64_t time_us) {
  if (time_us > 0) object[key] = iso_time(time_us);
}

void put_text(Json& object, const char* key, std::string_view text) {
  if (!text.empty()) object[key] = text;
}

void put_number(Json& object, const char* key, double value) {
  if (!std::isfinite(value)) return;
  // Stored as floats: 118.3 must not come back as 118.30000305.
  if (const auto rounded = parse_number(fmt::format("{:.7g}", value))) object[key] = *rounded;
}

}  // namespace furlong::fleet
