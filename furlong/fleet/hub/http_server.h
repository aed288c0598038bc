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
  std::string method;  ///< "GET"; any token; HEAD: answer as GET, the server leaves the body out
  std::string path;    ///< "/v1/races", decoded once; may have ".."
  std::vector<std::pair<std::string, std::string>> query;    ///< decoded, in order
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;                                          ///< decompressed where the client compressed it
  std::string peer;                                          ///< address of the client, without the port
  std::string_view header(std::string_view name) const;      ///< the first; empty: none
  std::optional<std::string> parameter(std::string_view name) const;
};

/// Date, Content-Length, Connection, Server, X-Content-Type-Options and gzip (of text over 1 KiB, where the
/// client takes it; an ETag stays as it is) are the server's. One that could mislead a client (a control
/// character in a header, a header of the server's, a status that is none) is not sent: the client gets 500.
struct ServerReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string content_type = "application/json";
};

/// Times in seconds; limits above which something is refused.
struct HttpServerOptions {
  std::string address = "127.0.0.1";       ///< a number: "127.0.0.1", "0.0.0.0", "::1", "::" (both families)
  std::uint16_t port = 0;                  ///< 0: any; see HttpServer::port()
  std::filesystem::path certificate, key;  ///< PEM; both or none: TLS (1.2 or newer) or plain
  std::size_t most_header_bytes = 16u << 10;  ///< 431
  std::size_t most_body_bytes = 8u << 20;     ///< as sent and decompressed, each; 413
  /// Bodies that are being received or worked on, together: a request that finds no room is answered 429
  /// before its body is read. Decompressed bodies (at most `threads`) are counted but not refused. Replies
  /// that are being sent may take as much again; beyond it they are 503.
  std::size_t most_memory_bytes = 256u << 20;
  int most_connections = 4096;  ///< beyond it a connection is closed at once
  /// Of one IPv4 address or one IPv6 network (/64). Behind a proxy all come from its address: raise it there.
  int most_connections_per_peer = 256;
  double header_timeout_s = 10;  ///< of a TLS handshake, and of a request up to its body
  /// As long as an agent gives a batch (its records_timeout_s): who is slow and honest would never come to an
  /// end otherwise. slowest_bytes_per_s is for the others.
  double body_timeout_s = 1800;
  double idle_timeout_s = 60;     ///< between two requests
  double handler_timeout_s = 60;  ///< from the last byte of a request, with the wait for a thread: then 500
  double write_timeout_s = 60;    ///< of a whole reply
  /// Headers and bodies that come slower are given up; over what came after the first slow_grace_s.
  double slowest_bytes_per_s = 512;
  double slow_grace_s = 5;
  int network_threads = 1;
  int threads = 2;           ///< that run handlers
  int most_waiting = 512;    ///< requests that wait for one; beyond it 503
  double stop_grace_s = 10;  ///< requests in progress may end
};

/// What is counted; for metrics. Monotone, but for `connections` and `body_bytes` (now).
struct HttpServerCounts {
  std::uint64_t accepted = 0;             ///< connections
  std::uint64_t refused_connections = 0;  ///< beyond a limit
  std::uint64_t requests = 0;             ///< heads that were read whole
  std::uint64_t timeouts = 0;             ///< of handshakes, requests, handlers and replies
  std::uint64_t malformed = 0;            ///< what is no HTTP (400), and handshakes that failed
  std::uint64_t too_large = 0;            ///< 413 and 431
  std::uint64_t too_busy = 0;             ///< 429 for memory, 503
  std::uint64_t failed = 0;               ///< handlers and guards that threw, replies that could not be sent
  std::uint64_t connections = 0;
  std::uint64_t body_bytes = 0;
};

/// Called from several threads at once. What it throws is answered 500 without its words, and so is a request
/// that is not answered in handler_timeout_s; a thread that it blocks is lost until it returns, so it must
/// not.
using HttpHandler = std::function<ServerReply(const ServerRequest&)>;
/// Of every request, before its body is read: nullopt to go on, else the reply. Must be quick: it is called
/// from the network's threads. What it throws is answered 500.
using HttpGuard = std::function<std::optional<ServerReply>(const ServerRequest& head)>;

/// Thread safe. Requests are taken one after the other of each connection, in order.
class HttpServer {
 public:
  virtual ~HttpServer() = default;  ///< stops it, see stop()
  virtual std::uint16_t port() const = 0;
  virtual HttpServerCounts counts() const = 0;
  /// Takes no new connection, lets requests in progress end (stop_grace_s), then closes the rest. Returns
  /// when the last handler has returned. Not from a handler or a guard.
  virtual void stop() = 0;
};

/// Listens when it returns. `unavailable`: the address is taken or not here; `invalid`: address, certificate
/// or key, naming the file; `denied`: no right to the port. A certificate that changes on disk is taken for
/// new connections within seconds; one that cannot be read is logged, and the old one stays.
Result<std::unique_ptr<HttpServer>> serve_http(const HttpServerOptions& options, HttpGuard guard,
                                               HttpHandler handler);

}  // namespace furlong::fleet
