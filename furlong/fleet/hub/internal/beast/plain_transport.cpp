#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "furlong/fleet/hub/internal/beast/transports.h"

namespace furlong::fleet {
namespace {

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(Socket socket) : socket_(std::move(socket)) {}

  bool has_handshake() const override { return false; }
  void handshake(Done done) override {
    post([done = std::move(done)] { done(true); });
  }
  void read(std::span<char> into, Read done) override {
    socket_.async_read_some(
        asio::buffer(into.data(), into.size()),
        [done = std::move(done)](error_code error, std::size_t bytes) { done(error ? 0 : bytes); });
  }
  void write(std::string_view first, std::string_view second, Done done) override {
    const std::array<asio::const_buffer, 2> pieces{asio::buffer(first), asio::buffer(second)};
    asio::async_write(socket_, pieces,
                      [done = std::move(done)](error_code error, std::size_t) { done(!error); });
  }
  void end_writing(std::function<void()> done) override {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    post(std::move(done));
  }
  void discard(std::span<char> into, Read done) override { read(into, std::move(done)); }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }
  void post(std::move_only_function<void()> task) override {
    asio::post(socket_.get_executor(), std::move(task));
  }

 private:
  Socket socket_;
};

}  // namespace

std::unique_ptr<Transport> make_plain_transport(Socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

}  // namespace furlong::fleet
