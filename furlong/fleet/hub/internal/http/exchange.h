#pragma once
// What happens between a whole request and its reply; on a handler's thread.

#include <optional>
#include <string>

#include "furlong/fleet/hub/internal/http/server_core.h"

namespace furlong::fleet {

/// How a body is compressed.
enum class Coding { none, gzip, deflate };
/// nullopt: one that is not known, or several.
std::optional<Coding> coding_of(std::string_view content_encoding);

/// A reply that may be sent: checked, compressed, its memory counted.
struct ReadyReply {
  ServerReply reply;
  MemoryShare memory;
  bool close = false;
};

/// Checks it (500 in its place), compresses it where `gzip` allows, counts its memory (503 in its place).
/// Never throws.
ReadyReply make_ready(ServerCore& core, ServerReply reply, bool gzip) noexcept;
/// Decompresses the body, calls the handler. Never throws; `memory` is what the body holds.
ReadyReply answer(ServerCore& core, ServerRequest& request, Coding coding, MemoryShare& memory) noexcept;
/// The guard's word; never throws.
std::optional<ServerReply> ask_guard(ServerCore& core, const ServerRequest& head) noexcept;

}  // namespace furlong::fleet
