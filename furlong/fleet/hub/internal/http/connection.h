#pragma once
// One client's connection: reads requests one after the other, has them answered, writes the replies. Lives
// on one network loop's thread; nothing in it blocks.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/fleet/hub/internal/http/exchange.h"
#include "furlong/fleet/hub/internal/http/request_reader.h"
#include "furlong/fleet/hub/internal/http/server_core.h"
#include "furlong/fleet/hub/internal/http/transport.h"

namespace furlong::fleet {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// `closed` is called once, on the loop's thread. The core outlives the connection.
  Connection(ServerCore& core, std::unique_ptr<Transport> transport, std::string peer,
             std::function<void(Connection&)> closed);
  Connection(const Connection&) = delete;

  // On the loop's thread:
  void start();
  void tick(std::int64_t now_ns);  ///< looks at deadlines; several times a second
  void end_idle();                 ///< closes it unless a request is in progress
  void close();

 private:
  enum class Phase { handshake, idle, head, body, working, writing, lingering, closed };

  void enter(Phase phase, double timeout_s);
  void next_request();
  void pump();
  void read();
  void on_read(std::size_t bytes);
  bool on_head();
  std::optional<ServerReply> refuse_by_head(Coding& coding);
  Refusal on_body(std::string_view piece);
  void dispatch();
  void respond(ReadyReply ready);
  void respond_and_close(ServerReply reply);
  void on_written(bool ok, bool keep);
  void linger();
  void discard();
  void on_timeout();
  void count_refusal(int status);
  template <class F>
  auto guarded(F f);

  ServerCore& core_;
  const std::unique_ptr<Transport> transport_;
  const std::string peer_;
  const std::function<void(Connection&)> closed_;

  Phase phase_ = Phase::idle;
  std::int64_t phase_begin_ns_ = 0, deadline_ns_ = 0;
  std::uint64_t phase_bytes_ = 0;  // of the head or the body, as they came
  std::atomic<bool> gone_{false};  // for the handler's thread: nobody waits for the reply

  std::vector<char> buffer_;
  std::string_view unread_;  // of buffer_
  bool reading_ = false, writing_ = false;
  bool first_ = true;

  std::unique_ptr<RequestReader> reader_;
  ServerRequest request_;
  Coding coding_ = Coding::none;
  bool keep_alive_ = false, http_1_1_ = true, chunked_ = false, is_head_ = false;
  std::uint64_t length_ = 0;  // as the head says
  std::uint64_t serial_ = 0;  // of the request: a reply that comes after its time is not the next one's
  MemoryShare memory_;        // of the body

  ReadyReply reply_;
  std::string reply_head_;
};

}  // namespace furlong::fleet
