#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "furlong/fleet/hub/internal/beast/tls_context.h"
#include "furlong/fleet/hub/internal/beast/transports.h"

namespace furlong::fleet {
namespace {

class TlsTransport : public Transport {
 public:
  TlsTransport(Socket socket, std::shared_ptr<TlsContext> context)
      : context_(std::move(context)), stream_(std::move(socket), context_->context) {}

  bool has_handshake() const override { return true; }
  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](error_code error) { done(!error); });
  }
  void read(std::span<char> into, Read done) override {
    stream_.async_read_some(
        asio::buffer(into.data(), into.size()),
        [done = std::move(done)](error_code error, std::size_t bytes) { done(error ? 0 : bytes); });
  }
  void write(std::string_view first, std::string_view second, Done done) override {
    const std::array<asio::const_buffer, 2> pieces{asio::buffer(first), asio::buffer(second)};
    asio::async_write(stream_, pieces,
                      [done = std::move(done)](error_code error, std::size_t) { done(!error); });
  }
  void end_writing(std::function<void()> done) override {
    // Ends when the client's own close_notify comes, or something else than that.
    stream_.async_shutdown([this, done = std::move(done)](error_code) {
      error_code ignored;
      stream_.next_layer().shutdown(Socket::shutdown_send, ignored);
      done();
    });
  }
  void discard(std::span<char> into, Read done) override {
    stream_.next_layer().async_read_some(
        asio::buffer(into.data(), into.size()),
        [done = std::move(done)](error_code error, std::size_t bytes) { done(error ? 0 : bytes); });
  }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }
  void post(std::move_only_function<void()> task) override {
    asio::post(stream_.next_layer().get_executor(), std::move(task));
  }

 private:
  std::shared_ptr<TlsContext> context_;
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> make_tls_transport(Socket socket, std::shared_ptr<TlsContext> context) {
  return std::make_unique<TlsTransport>(std::move(socket), std::move(context));
}

}  // namespace furlong::fleet
