#pragma once
// A reply as it goes over the wire.

#include <cstdint>
#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/fleet/hub/http_server.h"

namespace furlong::fleet {

/// The server's own replies: {"schema":1,"error":{"code":…,"message":…}}. `message` needs no escapes in JSON.
/// `retry_after_s` 0: no such header.
ServerReply error_reply(int status, std::string_view message, int retry_after_s = 0);

/// `invalid` when a client could be misled by it: a status that is none, a header that is no token, a value
/// with CR, LF or another control character, and fields that are the server's to write (Connection,
/// Content-Length, Date, Server, Transfer-Encoding and what goes with them).
Status check_reply(const ServerReply& reply);

/// Whether an Accept-Encoding field allows gzip.
bool accepts_gzip(std::string_view accept_encoding);
/// Whether the type and the size of a reply make gzip worth while, and nothing compressed it already.
bool is_worth_gzip(const ServerReply& reply);

struct WireOptions {
  bool keep_alive = true;
  bool http_1_1 = true;
  std::int64_t wall_us = 0;  ///< for Date
};
/// Status line and fields, with the empty line. Content-Length is that of the body, also where the body is
/// not sent (HEAD); 204 and 304 have none.
std::string print_head(const ServerReply& reply, const WireOptions& options);

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::int64_t wall_us);
/// Whether a reply of this status may have a body.
bool may_have_body(int status);

}  // namespace furlong::fleet
