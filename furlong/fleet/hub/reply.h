#pragma once
// The hub's replies: documents with their tags, and errors as docs/formats/hub-api.md has them. Pure
// functions.

#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/fleet/hub/http_server.h"

namespace furlong::fleet {

/// What is served again and again: bytes, and their tag in quotes.
struct Document {
  std::string body;
  std::string tag;
};
Document make_document(std::string body);
/// On one line, with a newline at its end.
Document make_document(const Json& json);

/// 200 with the tag, or 304 where the request has it.
ServerReply answer(const ServerRequest& request, const Document& document,
                   std::string_view content_type = "application/json");
/// Whether `If-None-Match` names the tag; weak and strong ones are compared alike.
bool has_tag(const ServerRequest& request, std::string_view tag);

/// {"schema":1,"error":{"code","message"}}; the message on one line, cut.
ServerReply error_reply(int status, Code code, std::string_view message);
/// The same with Retry-After, in whole seconds, at least 1.
ServerReply busy_reply(int status, double retry_s, Code code, std::string_view message);
/// The store's error: 503, what is wrong with it, and that it is safe to ask again.
ServerReply store_reply(const Error& error);
/// What a store's error means: "full", "read-only", "away", "held by another writer", …
std::string_view store_state(Code code);

/// "2026-03-01T12:00:00Z" of a reply; absent for 0.
void put_time(Json& object, const char* key, std::int64_t time_us);
/// Left out when it is empty.
void put_text(Json& object, const char* key, std::string_view text);
/// As many digits as a float holds; left out when it is no number.
void put_number(Json& object, const char* key, double value);

}  // namespace furlong::fleet
