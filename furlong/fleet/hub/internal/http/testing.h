#pragma once
// A client of raw bytes, and a server to send them to; for tests.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/hub/http_server.h"

namespace furlong::fleet {

constexpr int test_patience_s = 60;

/// One that arrived; status 0: none did before the connection ended.
struct RawReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;
  std::string header(std::string_view name) const;  ///< of several the last; empty: none
  std::size_t count(std::string_view name) const;
};

/// A blocking socket. Waits end after 60 s as if the other side had closed: no test waits so long for what
/// comes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, const char* address = "127.0.0.1");
  ~RawClient();
  RawClient(RawClient&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RawClient(const RawClient&) = delete;

  bool is_connected() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// False when the other side has closed.
  bool send(std::string_view bytes);
  /// Reads one reply; `with_body` false: of HEAD.
  RawReply reply(bool with_body = true);
  RawReply exchange(std::string_view request) {
    send(request);
    return reply();
  }
  /// Whatever comes until the other side closes.
  std::string rest();
  /// The other side closed, in order or by a reset, and nothing came before.
  bool is_closed();
  void end_sending();
  void close();

 private:
  bool fill();
  int descriptor_ = -1;
  std::string buffer_;
};

/// "GET /path HTTP/1.1" with a Host.
std::string get(std::string_view path, std::string_view more_headers = "");
std::string post(std::string_view path, std::string_view body, std::string_view more_headers = "");

/// Waits until it holds, for a minute.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < test_patience_s * 100; ++i) {
    if (condition()) return true;
    system_clock().sleep_ns(10'000'000);
  }
  return condition();
}

inline std::string RawReply::header(std::string_view name) const {
  std::string found;
  for (const auto& [key, value] : headers)
    if (key == name) found = value;
  return found;
}

inline std::size_t RawReply::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(headers, [&](const auto& field) { return field.first == name; }));
}

inline RawClient::RawClient(std::uint16_t port, const char* address) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (auto* const six = reinterpret_cast<sockaddr_in6*>(&storage);
      inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    size = sizeof *six;
  } else {
    auto* const four = reinterpret_cast<sockaddr_in*>(&storage);
    inet_pton(AF_INET, address, &four->sin_addr);
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    size = sizeof *four;
  }
  descriptor_ = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) return;
  const timeval patience{.tv_sec = test_patience_s, .tv_usec = 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int yes = 1, buffer_bytes = 256 << 10;
  // The same on every machine, else one that does not read may be sent tens of MiB.
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(descriptor_, reinterpret_cast<sockaddr*>(&storage), size) != 0) close();
}

inline RawClient::~RawClient() { close(); }

inline void RawClient::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

inline void RawClient::end_sending() { shutdown(descriptor_, SHUT_WR); }

inline bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

inline bool RawClient::fill() {
  char piece[16384];
  const ssize_t got = recv(descriptor_, piece, sizeof piece, 0);
  if (got <= 0) return false;
  buffer_.append(piece, static_cast<std::size_t>(got));
  return true;
}

inline RawReply RawClient::reply(bool with_body) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
    if (!fill()) return {};
  RawReply out;
  const std::vector<std::string> lines = split(buffer_.substr(0, end), '\n');
  out.status = std::atoi(lines.front().substr(9).c_str());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(':');
    std::string name = lines[i].substr(0, colon);
    for (char& letter : name)
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    out.headers.emplace_back(std::move(name), std::string(trim(lines[i].substr(colon + 1))));
  }
  buffer_.erase(0, end + 4);
  const auto length = static_cast<std::size_t>(std::atoll(out.header("content-length").c_str()));
  if (!with_body) return out;
  while (buffer_.size() < length)
    if (!fill()) return {};
  out.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return out;
}

inline std::string RawClient::rest() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

inline bool RawClient::is_closed() {
  if (!buffer_.empty()) return false;
  char byte = 0;
  const ssize_t got = recv(descriptor_, &byte, 1, 0);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

inline std::string get(std::string_view path, std::string_view more_headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: hub\r\n{}\r\n", path, more_headers);
}

inline std::string post(std::string_view path, std::string_view body, std::string_view more_headers) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: hub\r\nContent-Length: {}\r\n{}\r\n{}", path, body.size(),
                     more_headers, body);
}

}  // namespace furlong::fleet
