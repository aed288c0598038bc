#include "furlong/fleet/hub/internal/http/connection.h"

#include <algorithm>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/hub/internal/http/reply.h"
#include "furlong/fleet/hub/internal/http/target.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t head_buffer_bytes = 4u << 10;
constexpr std::size_t body_buffer_bytes = 32u << 10;
constexpr std::size_t least_share_bytes = 64u << 10;  // of the memory for bodies
constexpr double linger_s = 2;
constexpr int memory_retry_s = 5, queue_retry_s = 1;
// Of a chunked body, as it is sent: its chunks' headers may be larger than what is in them, but not for ever.
constexpr std::uint64_t chunk_overhead_factor = 2, chunk_overhead_bytes = 4096;
constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";

std::int64_t now_ns() { return system_clock().now_ns(); }

/// Of whatever an operator may have written: none is negative or longer than thirty years.
std::int64_t ns_of(double seconds) {
  return seconds > 0 ? static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9) : 0;
}

}  // namespace

Connection::Connection(ServerCore& core, std::unique_ptr<Transport> transport, std::string peer,
                       std::function<void(Connection&)> closed)
    : core_(core), transport_(std::move(transport)), peer_(std::move(peer)), closed_(std::move(closed)) {}

/// A callback that keeps this connection alive, does nothing once it is closed, and closes it where it throws
/// (out of memory).
template <class F>
auto Connection::guarded(F f) {
  return [self = shared_from_this(), f = std::move(f)](auto&&... with) mutable {
    if (self->phase_ == Phase::closed) return;
    try {
      f(std::forward<decltype(with)>(with)...);
    } catch (...) {
      ++self->core_.failed;
      self->close();
    }
  };
}

void Connection::enter(Phase phase, double timeout_s) {
  phase_ = phase;
  phase_begin_ns_ = now_ns();
  deadline_ns_ = phase_begin_ns_ + ns_of(timeout_s);
  phase_bytes_ = 0;
}

void Connection::start() {
  if (!transport_->has_handshake()) return next_request();
  enter(Phase::handshake, core_.options.header_timeout_s);
  transport_->handshake(guarded([this](bool ok) {
    if (ok) return next_request();
    ++core_.malformed;
    close();
  }));
}

void Connection::next_request() {
  reader_ = RequestReader::make(core_.options.most_header_bytes);
  request_ = {};
  coding_ = Coding::none;
  keep_alive_ = is_head_ = chunked_ = false;
  http_1_1_ = true;
  ++serial_;
  // Who has just connected must say something; who said something may think.
  enter(Phase::idle, first_ ? core_.options.header_timeout_s : core_.options.idle_timeout_s);
  first_ = false;
  if (core_.stopping && unread_.empty()) return close();
  pump();
}

void Connection::pump() {
  for (;;) {
    if (phase_ == Phase::idle && !unread_.empty()) enter(Phase::head, core_.options.header_timeout_s);
    const std::size_t taken = reader_->feed(unread_);
    unread_.remove_prefix(taken);
    phase_bytes_ += taken;
    switch (reader_->stage()) {
      case RequestReader::Stage::refused: {
        const Refusal refusal = reader_->refusal();
        count_refusal(refusal.status);
        return respond_and_close(
            error_reply(refusal.status, refusal.message, refusal.status == 429 ? memory_retry_s : 0));
      }
      case RequestReader::Stage::head:
        return read();
      case RequestReader::Stage::body:
        if (phase_ == Phase::body) {
          // A chunk of one byte may come with a header of thousands.
          if (chunked_ &&
              phase_bytes_ > chunk_overhead_factor * core_.options.most_body_bytes + chunk_overhead_bytes) {
            count_refusal(413);
            return respond_and_close(error_reply(413, "the body's chunks are larger than what is in them"));
          }
          return read();
        }
        if (!on_head()) return;
        break;
      case RequestReader::Stage::complete:
        if (phase_ != Phase::body && !on_head()) return;
        return dispatch();
    }
  }
}

void Connection::read() {
  const std::size_t wanted = phase_ == Phase::body ? body_buffer_bytes : head_buffer_bytes;
  if (buffer_.size() != wanted) {
    buffer_ = std::vector<char>(wanted);  // not resize: an idle connection must not keep the larger one
    unread_ = {};
  }
  reading_ = true;
  transport_->read(buffer_, guarded([this](std::size_t bytes) {
                     reading_ = false;
                     on_read(bytes);
                   }));
}

void Connection::on_read(std::size_t bytes) {
  if (phase_ != Phase::idle && phase_ != Phase::head && phase_ != Phase::body) return;  // given up meanwhile
  if (bytes == 0) return close();
  unread_ = std::string_view(buffer_.data(), bytes);
  pump();
}

/// False: the request is answered already, or reading goes on later.
bool Connection::on_head() {
  ++core_.requests;
  RequestHead& head = reader_->head();
  keep_alive_ = head.keep_alive;
  http_1_1_ = head.http_1_1;
  chunked_ = head.chunked;
  is_head_ = head.method == "HEAD";
  auto target = parse_target(head.target);
  if (!target) {
    count_refusal(400);
    respond_and_close(error_reply(400, target.error().message()));
    return false;
  }
  request_ = {.method = std::move(head.method),
              .path = std::move(target->path),
              .query = std::move(target->query),
              .headers = std::move(head.headers),
              .peer = peer_};
  if (auto reply = refuse_by_head(coding_)) {
    count_refusal(reply->status);
    respond_and_close(std::move(*reply));
    return false;
  }
  if (auto reply = ask_guard(core_, request_)) {
    respond(make_ready(core_, std::move(*reply), false));
    return false;
  }
  if (core_.pool.is_full()) {
    count_refusal(503);
    respond(make_ready(core_, error_reply(503, "too many requests wait", queue_retry_s), false));
    return false;
  }
  if (reader_->stage() == RequestReader::Stage::complete) return true;
  memory_ = MemoryShare(core_.bodies);
  length_ = head.length;
  const std::uint64_t length = chunked_ ? 1 : length_;
  // What a client only announces is not held for it, but there must be room for it now.
  if (!core_.bodies.has_room_for(length) ||
      !memory_.grow(std::min<std::uint64_t>(length, least_share_bytes))) {
    count_refusal(429);
    respond_and_close(
        error_reply(429, "the requests that are being worked on fill the memory", memory_retry_s));
    return false;
  }
  reader_->set_sink([this](std::string_view piece) { return on_body(piece); });
  enter(Phase::body, core_.options.body_timeout_s);
  if (!head.expects_continue || !unread_.empty()) return true;
  writing_ = true;
  transport_->write(go_on, {}, guarded([this](bool ok) {
                      writing_ = false;
                      ok ? pump() : close();
                    }));
  return false;
}

std::optional<ServerReply> Connection::refuse_by_head(Coding& coding) {
  const RequestHead& head = reader_->head();
  if (!head.has_body()) return std::nullopt;
  std::size_t codings = 0;
  for (const auto& [name, value] : request_.headers) codings += name == "content-encoding" ? 1 : 0;
  const auto known = coding_of(request_.header("content-encoding"));
  if (!known || codings > 1)
    return error_reply(415, "Content-Encoding is neither 'gzip' nor 'deflate' nor 'identity'");
  coding = *known;
  if (head.length > core_.options.most_body_bytes)
    return error_reply(413, fmt::format("the body is larger than {} bytes", core_.options.most_body_bytes));
  return std::nullopt;
}

Refusal Connection::on_body(std::string_view piece) {
  const std::size_t most = core_.options.most_body_bytes;
  const std::size_t needed = request_.body.size() + piece.size();
  if (needed > most) return {413, fmt::format("the body is larger than {} bytes", most)};
  if (needed > memory_.bytes()) {
    const std::size_t end = chunked_ ? most : static_cast<std::size_t>(length_);
    const std::size_t wanted = std::min(std::max(needed, 2 * memory_.bytes()), end);
    if (!memory_.grow(wanted - memory_.bytes()) && !memory_.grow(needed - memory_.bytes()))
      return {429, "the requests that are being worked on fill the memory"};
  }
  if (request_.body.capacity() < needed) request_.body.reserve(memory_.bytes());
  request_.body.append(piece);
  return {};
}

void Connection::dispatch() {
  enter(Phase::working, core_.options.handler_timeout_s);
  HandlerPool::Task task = [self = shared_from_this(), serial = serial_, request = std::move(request_),
                            coding = coding_, memory = std::move(memory_)]() mutable {
    if (self->gone_) return;
    ReadyReply ready = answer(self->core_, request, coding, memory);
    request = {};
    memory.release();
    try {
      self->transport_->post([self, serial, ready = std::move(ready)]() mutable {
        if (self->phase_ != Phase::working || self->serial_ != serial) return;
        self->guarded([&] { self->respond(std::move(ready)); })();
      });
    } catch (...) {  // without memory; the deadline answers
      ++self->core_.failed;
    }
  };
  if (core_.pool.submit(std::move(task))) return;
  task = nullptr;
  count_refusal(503);
  respond(make_ready(core_, error_reply(503, "too many requests wait", queue_retry_s), false));
}

void Connection::respond(ReadyReply ready) {
  request_ = {};  // its body is not waited for by what is written
  memory_.release();
  reply_ = std::move(ready);
  const bool whole = reader_->stage() == RequestReader::Stage::complete;
  const bool keep = keep_alive_ && whole && !reply_.close && !core_.stopping;
  reply_head_ = print_head(reply_.reply,
                           {.keep_alive = keep, .http_1_1 = http_1_1_, .wall_us = system_clock().wall_us()});
  enter(Phase::writing, core_.options.write_timeout_s);
  writing_ = true;
  const std::string_view body = is_head_ ? std::string_view() : std::string_view(reply_.reply.body);
  transport_->write(reply_head_, body, guarded([this, keep](bool ok) {
                      writing_ = false;
                      on_written(ok, keep);
                    }));
}

void Connection::respond_and_close(ServerReply reply) {
  ReadyReply ready = make_ready(core_, std::move(reply), false);
  ready.close = true;
  respond(std::move(ready));
}

void Connection::on_written(bool ok, bool keep) {
  if (!ok) return close();
  reply_ = {};
  reply_head_.clear();
  keep ? next_request() : linger();
}

/// Closing with bytes unread makes the system reset the connection, and the client may lose the reply: what
/// it still sends is read for a while.
void Connection::linger() {
  if (reading_) return close();  // all that came was read
  unread_ = {};
  enter(Phase::lingering, linger_s);
  transport_->end_writing(guarded([this] { discard(); }));
}

void Connection::discard() {
  buffer_.resize(std::max(buffer_.size(), head_buffer_bytes));
  reading_ = true;
  transport_->discard(buffer_, guarded([this](std::size_t bytes) {
                        reading_ = false;
                        bytes == 0 ? close() : discard();
                      }));
}

void Connection::tick(std::int64_t now) {
  if (phase_ == Phase::closed) return;
  bool late = now >= deadline_ns_;
  if (phase_ == Phase::head || phase_ == Phase::body) {
    const double slow_s =
        static_cast<double>(now - phase_begin_ns_ - ns_of(core_.options.slow_grace_s)) * 1e-9;
    late |= slow_s > 0 && static_cast<double>(phase_bytes_) < slow_s * core_.options.slowest_bytes_per_s;
  }
  if (late) guarded([this] { on_timeout(); })();
}

void Connection::on_timeout() {
  if (phase_ == Phase::idle || phase_ == Phase::lingering) return close();
  ++core_.timeouts;
  if (phase_ == Phase::handshake || writing_) return close();
  if (phase_ == Phase::working) {
    gone_ = true;
    return respond_and_close(error_reply(500, "the request took too long"));
  }
  respond_and_close(error_reply(408, "the request came too slowly"));
}

void Connection::end_idle() {
  if (phase_ == Phase::idle || phase_ == Phase::handshake) close();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const auto self = shared_from_this();
  phase_ = Phase::closed;
  gone_ = true;
  transport_->close();
  request_ = {};
  memory_.release();
  closed_(*this);
}

void Connection::count_refusal(int status) {
  if (status == 400) ++core_.malformed;
  if (status == 413 || status == 431) ++core_.too_large;
  if (status == 429 || status == 503) ++core_.too_busy;
}

}  // namespace furlong::fleet
