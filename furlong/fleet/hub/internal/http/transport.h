#pragma once
// One connection's bytes, plain or through TLS. The seam between the protocol and the network.

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

namespace furlong::fleet {

/// Used by the one thread that runs its network loop; post alone is for any. Callbacks come from that thread,
/// never from inside the call that starts the operation. One read and one write may be under way at once.
class Transport {
 public:
  using Done = std::function<void(bool ok)>;
  using Read = std::function<void(std::size_t bytes)>;  ///< 0: the other side ended it, or it failed

  virtual ~Transport() = default;
  virtual bool has_handshake() const = 0;
  virtual void handshake(Done done) = 0;
  /// `into` must stay until `done`.
  virtual void read(std::span<char> into, Read done) = 0;
  /// Both pieces, whole; they must stay until `done`.
  virtual void write(std::string_view first, std::string_view second, Done done) = 0;
  /// Says that nothing more will come.
  virtual void end_writing(std::function<void()> done) = 0;
  /// Bytes that nobody wants, after end_writing.
  virtual void discard(std::span<char> into, Read done) = 0;
  /// At once; operations under way end as failed.
  virtual void close() = 0;
  virtual void post(std::move_only_function<void()> task) = 0;
};

}  // namespace furlong::fleet
