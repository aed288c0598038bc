#include "furlong/fleet/hub/internal/http/exchange.h"

#include <bit>
#include <exception>

#include "furlong/base/log.h"
#include "furlong/base/text.h"
#include "furlong/base/zip.h"
#include "furlong/fleet/hub/internal/http/reply.h"

namespace furlong::fleet {
namespace {

ServerReply failed_reply() { return error_reply(500, "the hub failed at this request; its log says why"); }

/// Decompresses in place; a reply where that fails.
std::optional<ServerReply> unpack(ServerCore& core, ServerRequest& request, Coding coding,
                                  MemoryShare& memory) {
  if (coding == Coding::none) return std::nullopt;
  const std::size_t most = core.options.most_body_bytes;
  Result<std::string> body =
      coding == Coding::gzip ? inflate_gzip(request.body, most) : inflate(request.body, most);
  if (!body && body.error().code() == Code::exhausted) {
    ++core.too_large;
    return error_reply(413, fmt::format("the decompressed body is larger than {} bytes", most));
  }
  if (!body) {
    ++core.malformed;
    return error_reply(400, "the body is not what its Content-Encoding says");
  }
  memory.grow_anyway(body->size());
  request.body = std::move(*body);
  return std::nullopt;
}

ServerReply call(ServerCore& core, const ServerRequest& request) {
  try {
    return core.handler(request);
  } catch (const std::exception& error) {
    core.note_failure(error.what());
  } catch (...) {
    core.note_failure("it threw something that is no exception");
  }
  return failed_reply();
}

void compress(ServerReply& reply, bool wanted) {
  if (!is_worth_gzip(reply)) return;
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  if (!wanted) return;
  auto smaller = gzip(reply.body, Zip::quick);
  if (!smaller || smaller->size() >= reply.body.size()) return;  // it goes as it is
  reply.body = std::move(*smaller);
  reply.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace

void ServerCore::note_failure(std::string_view what) {
  const std::uint64_t count = ++failed;
  if (std::has_single_bit(count)) log_error("hub: request {} that failed: {}", count, one_line(what));
}

std::optional<Coding> coding_of(std::string_view content_encoding) {
  std::string name(trim(content_encoding));
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  if (name.empty() || name == "identity") return Coding::none;
  if (name == "gzip" || name == "x-gzip") return Coding::gzip;
  if (name == "deflate") return Coding::deflate;
  return std::nullopt;
}

ReadyReply make_ready(ServerCore& core, ServerReply reply, bool gzip) noexcept try {
  if (const Status right = check_reply(reply); !right) {
    core.note_failure(right.error().text());
    reply = failed_reply();
  }
  if (!may_have_body(reply.status)) reply.body.clear();
  compress(reply, gzip);
  ReadyReply ready;
  ready.memory = MemoryShare(core.replies);
  // The last one may go beyond the budget, else one larger than it could never be sent.
  if (!core.replies.has_room_for(1)) {
    ++core.too_busy;
    reply = error_reply(503, "too many replies are being sent", 2);
  }
  ready.memory.grow_anyway(reply.body.size());
  ready.reply = std::move(reply);
  return ready;
} catch (...) {  // without memory
  ++core.failed;
  return {.reply = {.status = 500}, .close = true};
}

ReadyReply answer(ServerCore& core, ServerRequest& request, Coding coding, MemoryShare& memory) noexcept try {
  const bool gzip = accepts_gzip(request.header("accept-encoding"));
  if (auto refused = unpack(core, request, coding, memory))
    return make_ready(core, std::move(*refused), gzip);
  return make_ready(core, call(core, request), gzip);
} catch (...) {
  ++core.failed;
  return {.reply = {.status = 500}, .close = true};
}

std::optional<ServerReply> ask_guard(ServerCore& core, const ServerRequest& head) noexcept try {
  try {
    return core.guard ? core.guard(head) : std::nullopt;
  } catch (const std::exception& error) {
    core.note_failure(error.what());
  } catch (...) {
    core.note_failure("the guard threw something that is no exception");
  }
  return failed_reply();
} catch (...) {
  return ServerReply{.status = 500};
}

}  // namespace furlong::fleet
