#pragma once
// What a device, its buffers and its modules share: one context with one stream, and the pools.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"
#include "furlong/device/cuda/internal/driver_api.h"

namespace furlong::device::cuda {

/// Limits of one card that launches are held against before the driver sees them.
struct Limits {
  int threads_per_block = 0;
  std::uint64_t block[3] = {0, 0, 0};
  std::uint64_t grid[3] = {0, 0, 0};
  std::uint64_t shared_bytes = 0;          ///< of a block, static and dynamic, without asking for more
  std::uint64_t shared_bytes_at_most = 0;  ///< when a kernel asks for it
  int registers_per_block = 0;
  int threads_per_multiprocessor = 0;
  int warp = 32;
};

/// Owns a context of its own, not the primary one, which an application may use beside it. Thread safe where
/// a member says so; the rest belongs to the thread that launches.
class Session {
 public:
  static Result<std::shared_ptr<Session>> open(const Api& api, Card card, std::string address);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Api& api() const { return api_; }
  const Limits& limits() const { return limits_; }
  const std::string& address() const { return address_; }
  Stream stream() const { return stream_; }

  /// Makes the context current on the calling thread. Thread safe. Once the context is lost: `unavailable`,
  /// or `denied` where no kernel is to blame.
  Status enter();
  /// The Error of a code, remembering when the context went with it. What is no kernel's doing (a failing
  /// card, one that was taken away) is `denied`: a race then blames no variant. Thread safe.
  Error failed(Status32 code, std::string_view doing);
  bool lost() const { return lost_by_ != kSuccess; }

  /// Device memory, from the pool where a piece of that size is kept. `exhausted` with asked and available.
  Result<Address> take(std::size_t bytes);
  /// Back to the pool, which keeps at most a GiB.
  void give(Address address, std::size_t bytes);
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t limit_bytes() const { return limit_; }
  void set_limit_bytes(std::uint64_t bytes) { limit_ = bytes; }

  /// Copies through two pinned pieces of host memory, one filled while the other is on its way.
  Status write(Address to, ByteView from);
  Status read(Address from, std::span<std::uint8_t> into);
  /// Enqueues; no waiting.
  Status fill(Address at, std::uint8_t byte, std::size_t count);
  /// Waits for the stream.
  Status finish(std::string_view doing);

  /// At least this many events, reused from call to call.
  Result<std::vector<Event>*> events(std::size_t count);

 private:
  Session(const Api& api, Card card, std::string address);
  Status set_up();
  bool make_staging();
  std::uint64_t trim_pool();
  Error no_memory(std::size_t asked, std::string_view why) const;

  struct Staging {
    void* bytes = nullptr;
    Event done = nullptr;
    bool busy = false;
  };

  const Api& api_;
  Card card_;
  std::string address_;
  Limits limits_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  std::atomic<Status32> lost_by_ = kSuccess;
  std::mutex pool_mutex_;
  std::multimap<std::size_t, Address> pool_;
  std::uint64_t pooled_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::atomic<std::uint64_t> used_ = 0;
  std::atomic<std::uint64_t> limit_ = 0;
  Staging staging_[2];
  std::vector<Event> events_;
};

}  // namespace furlong::device::cuda
