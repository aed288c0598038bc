#pragma once
// HTTP as the hub needs it, behind a seam: bounded requests in, replies out. One leaf knows the library.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::fleet {

struct ServerRequest {
  std::string method;                                        ///< "GET"
  std::string path;                                          ///< "/v1/races", decoded
  std::vector<std::pair<std::string, std::string>> query;    ///< decoded, in order
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;                                          ///< decompressed where the client compressed it
  std::string peer;                                          ///< address of the client, without the port
  std::string_view header(std::string_view name) const;      ///< the first; empty: none
  std::optional<std::string> parameter(std::string_view name) const;
};

struct ServerReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string content_type = "application/json";
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;                  ///< 0: any; see HttpServer::port()
  std::filesystem::path certificate, key;  ///< PEM; both or none: TLS or plain
  std::size_t most_header_bytes = 16u << 10;
  std::size_t most_body_bytes = 8u << 20;  ///< as sent and decompressed, each
  /// All bodies that are being received or worked on together; beyond it requests are answered 429 before
  /// their body is read.
  std::size_t most_memory_bytes = 256u << 20;
  int most_connections = 4096;  ///< beyond it a connection is closed at once
  int most_connections_per_peer = 256;
  double header_timeout_s = 10, body_timeout_s = 60, idle_timeout_s = 60, write_timeout_s = 60;
  double slowest_bytes_per_s = 512;  ///< a body that comes slower is given up
  int threads = 2;                   ///< that run handlers
  int most_waiting = 512;            ///< requests that wait for one; beyond it 503
  double stop_grace_s = 10;          ///< requests in progress may end
};

/// What is counted; for metrics. Monotone, but for `connections` and `body_bytes` (now).
struct HttpServerCounts {
  std::uint64_t accepted = 0, refused_connections = 0, requests = 0, timeouts = 0, malformed = 0,
                too_large = 0, too_busy = 0;
  std::uint64_t connections = 0, body_bytes = 0;
};

/// Called from several threads at once. What it throws or takes too long for is answered 500; it must not
/// block for long.
using HttpHandler = std::function<ServerReply(const ServerRequest&)>;
/// Before the body is read: nullopt to read it, else the reply. Quick; called from the network's threads.
using HttpGuard = std::function<std::optional<ServerReply>(const ServerRequest& head)>;

class HttpServer {
 public:
  virtual ~HttpServer() = default;  ///< stops it
  virtual std::uint16_t port() const = 0;
  virtual HttpServerCounts counts() const = 0;
  /// Takes no new connection, lets requests in progress end (stop_grace_s), then closes the rest. Blocks.
  virtual void stop() = 0;
};

/// Listens when it returns. `unavailable`: the address is taken or not here; `invalid`: certificate or key,
/// naming the file; `denied`: no right to the port.
Result<std::unique_ptr<HttpServer>> serve_http(const HttpServerOptions& options, HttpGuard guard,
                                               HttpHandler handler);

}  // namespace furlong::fleet
