// The server behind http_server.h: network loops with their connections, and the one that accepts.
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/internal/beast/asio.h"
#include "furlong/fleet/hub/internal/beast/tls_context.h"
#include "furlong/fleet/hub/internal/beast/transports.h"
#include "furlong/fleet/hub/internal/http/connection.h"
#include "furlong/fleet/hub/internal/http/server_core.h"

namespace furlong::fleet {
namespace {

using namespace std::chrono_literals;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                               asio::io_context::executor_type>;
constexpr auto tick_time = 50ms;
constexpr auto certificate_watch_time = 2s;
constexpr auto accept_pause = 200ms;  // when descriptors ran out

/// Descriptors that are kept for the store, the log and the like.
constexpr std::uint64_t reserved_descriptors = 100;

/// No more connections than the process may have: a hub that cannot open its store's files is worse than one
/// that refuses a client.
std::uint64_t most_connections_of(const HttpServerOptions& options) {
  const auto wanted = static_cast<std::uint64_t>(std::max(options.most_connections, 0));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const std::uint64_t possible =
      limit.rlim_cur > 2 * reserved_descriptors ? limit.rlim_cur - reserved_descriptors : limit.rlim_cur / 2;
  if (wanted <= possible) return wanted;
  log_warning("hub: takes {} connections at once, not {}: raise 'ulimit -n', which is {}", possible, wanted,
              static_cast<std::uint64_t>(limit.rlim_cur));
  return possible;
}

/// How often each client is connected. Thread safe.
class Peers {
 public:
  bool enter(const std::string& peer, int most) {
    const std::lock_guard lock(mutex_);
    int& count = counts_[peer];
    if (count >= most) {
      if (count == 0) counts_.erase(peer);
      return false;
    }
    ++count;
    return true;
  }
  void leave(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(peer);
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, int> counts_;
};

asio::ip::address plain_address(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

/// Whom the limit is for: who has an IPv6 address has 2^64 of them.
std::string peer_key(const asio::ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string();
}

/// One network thread and its connections.
class Loop {
 public:
  asio::io_context context{1};

  Loop() : work_(context.get_executor()), timer_(context) {}
  ~Loop() {
    context.stop();
    if (thread_.joinable()) thread_.join();
  }

  void run() {
    tick();
    thread_ = std::thread([this] {
      for (;;) try {
          context.run();
          return;
        } catch (const std::exception& error) {
          log_error("hub: a network thread goes on after: {}", error.what());
        } catch (...) {
        }
    });
  }

  /// After what was posted before.
  void join() {
    asio::post(context, [this] { context.stop(); });
    if (thread_.joinable()) thread_.join();
  }

  // On the loop's thread:
  void add(const std::shared_ptr<Connection>& connection) {
    connections_.emplace(connection.get(), connection);
    connection->start();
  }
  void remove(Connection& connection) { connections_.erase(&connection); }
  void for_all(void (Connection::*act)()) {
    for (const auto& connection : all()) (connection.get()->*act)();
  }

 private:
  std::vector<std::shared_ptr<Connection>> all() const {  // they leave while they are gone through
    std::vector<std::shared_ptr<Connection>> out;
    out.reserve(connections_.size());
    for (const auto& [pointer, connection] : connections_) out.push_back(connection);
    return out;
  }
  void tick() {
    timer_.expires_after(tick_time);
    timer_.async_wait([this](error_code error) {
      if (error) return;
      tick();  // first: what follows may fail for want of memory
      const std::int64_t now = system_clock().now_ns();
      for (const auto& connection : all()) connection->tick(now);
    });
  }

  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Timer timer_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

class BeastServer : public HttpServer {
 public:
  BeastServer(const HttpServerOptions& options, HttpGuard guard, HttpHandler handler)
      : core_(options, std::move(guard), std::move(handler)),
        most_connections_(most_connections_of(options)),
        loops_(static_cast<std::size_t>(std::max(options.network_threads, 1))),
        acceptor_(loops_.front().context),
        pause_(loops_.front().context),
        watch_(loops_.front().context) {}
  ~BeastServer() override { stop(); }

  Status listen() {
    const HttpServerOptions& options = core_.options;
    if (options.certificate.empty() != options.key.empty())
      return fail(Code::invalid, "TLS takes a certificate and a key: give both, or none for plain HTTP");
    if (!options.certificate.empty()) {
      FURLONG_TRY(certificate_, TlsCertificate::open(options.certificate, options.key));
    }
    FURLONG_CHECK(bind());
    for (Loop& loop : loops_) loop.run();
    running_ = true;
    asio::post(loops_.front().context, [this] {
      accept();
      if (certificate_) watch_certificate();
    });
    return {};
  }

  std::uint16_t port() const override { return port_; }
  HttpServerCounts counts() const override;
  void stop() override;

 private:
  Status bind();
  void accept();
  void on_accept(error_code error, Socket socket, Loop& loop);
  void admit(Socket socket, Loop& loop);
  void on_closed(Connection& connection, Loop& loop, const std::string& key);
  void pause(const error_code& error);
  void watch_certificate();

  ServerCore core_;
  const std::uint64_t most_connections_;
  Peers peers_;
  std::unique_ptr<TlsCertificate> certificate_;
  std::mutex stop_mutex_;
  std::mutex closed_mutex_;
  std::condition_variable closed_;
  bool running_ = false;
  std::uint16_t port_ = 0;
  std::vector<Loop> loops_;
  std::size_t next_loop_ = 0;
  bool paused_ = false;
  Acceptor acceptor_;
  Timer pause_, watch_;
};

Status BeastServer::bind() {
  const HttpServerOptions& options = core_.options;
  error_code error;
  std::string text = options.address;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  const auto address = asio::ip::make_address(text, error);
  if (error)
    return fail(
        Code::invalid,
        "'{}' is no address to listen at: give a number such as 127.0.0.1, 0.0.0.0 (all of IPv4), ::1 or :: "
        "(all)",
        options.address);
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  const std::string name =
      address.is_v6() ? fmt::format("[{}]:{}", text, options.port) : fmt::format("{}:{}", text, options.port);
  acceptor_.open(endpoint.protocol(), error);
  if (error)
    return fail(Code::unavailable, "{}: this machine has no such network ({})", name, error.message());
  acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (address.is_v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
  acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use)
    return fail(
        Code::unavailable,
        "{} is taken by another program (perhaps a hub that still runs): stop it, or choose another port",
        name);
  if (error == asio::error::access_denied)
    return fail(
        Code::denied,
        "no right to listen at {}: choose a port from 1024 on, or give the program CAP_NET_BIND_SERVICE",
        name);
  if (error)
    return fail(Code::unavailable, "cannot listen at {} ({}): 'ip address' lists what this machine has", name,
                error.message());
  port_ = acceptor_.local_endpoint(error).port();
  if (error) return fail(Code::internal, "{}: {}", name, error.message());
  return {};
}

void BeastServer::accept() {
  if (!acceptor_.is_open()) return;
  Loop& loop = loops_[next_loop_++ % loops_.size()];
  acceptor_.async_accept(loop.context, [this, &loop](error_code error, Socket socket) {
    on_accept(error, std::move(socket), loop);
  });
}

void BeastServer::on_accept(error_code error, Socket socket, Loop& loop) {
  if (!acceptor_.is_open()) return;
  if (error && error != asio::error::connection_aborted) return pause(error);
  paused_ = false;
  if (!error) try {
      admit(std::move(socket), loop);
    } catch (...) {  // without memory: this one is closed
      ++core_.refused_connections;
    }
  accept();
}

void BeastServer::admit(Socket socket, Loop& loop) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const auto address = plain_address(remote.address());
  std::string key = peer_key(address);
  ++core_.accepted;
  if (core_.connections >= most_connections_ || !peers_.enter(key, core_.options.most_connections_per_peer)) {
    ++core_.refused_connections;
    return;
  }
  ++core_.connections;
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  try {
    auto transport = certificate_ ? make_tls_transport(std::move(socket), certificate_->current())
                                  : make_plain_transport(std::move(socket));
    auto connection = std::make_shared<Connection>(
        core_, std::move(transport), address.to_string(),
        [this, &loop, key](Connection& closed) { on_closed(closed, loop, key); });
    asio::post(loop.context, [this, &loop, connection = std::move(connection)] {
      try {
        loop.add(connection);
      } catch (...) {
        connection->close();
      }
      if (core_.stopping) connection->end_idle();
    });
  } catch (...) {
    peers_.leave(key);
    --core_.connections;
    throw;
  }
}

void BeastServer::on_closed(Connection& connection, Loop& loop, const std::string& key) {
  peers_.leave(key);
  loop.remove(connection);
  {
    const std::lock_guard lock(closed_mutex_);
    --core_.connections;
  }
  closed_.notify_all();
}

/// Most often descriptors ran out: who waits in the system's queue waits a little longer.
void BeastServer::pause(const error_code& error) {
  if (!std::exchange(paused_, true))
    log_warning("hub: cannot take connections for now ({}): raise 'ulimit -n' or lower the most connections",
                error.message());
  pause_.expires_after(accept_pause);
  pause_.async_wait([this](error_code cancelled) {
    if (!cancelled) accept();
  });
}

void BeastServer::watch_certificate() {
  watch_.expires_after(certificate_watch_time);
  watch_.async_wait([this](error_code error) {
    if (error) return;
    watch_certificate();
    certificate_->refresh();
  });
}

HttpServerCounts BeastServer::counts() const {
  return {.accepted = core_.accepted,
          .refused_connections = core_.refused_connections,
          .requests = core_.requests,
          .timeouts = core_.timeouts,
          .malformed = core_.malformed,
          .too_large = core_.too_large,
          .too_busy = core_.too_busy,
          .failed = core_.failed,
          .connections = core_.connections,
          .body_bytes = core_.bodies.used()};
}

void BeastServer::stop() {
  const std::lock_guard once(stop_mutex_);
  if (!running_) return;
  running_ = false;
  core_.stopping = true;
  asio::post(loops_.front().context, [this] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    watch_.cancel();
  });
  for (Loop& loop : loops_) asio::post(loop.context, [&loop] { loop.for_all(&Connection::end_idle); });
  const double grace_s = core_.options.stop_grace_s > 0 ? std::min(core_.options.stop_grace_s, 1e6) : 0;
  {
    std::unique_lock lock(closed_mutex_);
    closed_.wait_for(lock, std::chrono::duration<double>(grace_s), [this] { return core_.connections == 0; });
  }
  for (Loop& loop : loops_) asio::post(loop.context, [&loop] { loop.for_all(&Connection::close); });
  core_.pool.stop();  // its last replies find their connections closed
  for (Loop& loop : loops_) loop.join();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> serve_http(const HttpServerOptions& options, HttpGuard guard,
                                               HttpHandler handler) {
  try {
    auto server = std::make_unique<BeastServer>(options, std::move(guard), std::move(handler));
    FURLONG_CHECK(server->listen());
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const std::exception& error) {
    return fail(Code::internal, "the HTTP server: {}", error.what());
  }
}

}  // namespace furlong::fleet
