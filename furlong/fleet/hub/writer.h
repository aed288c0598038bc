#pragma once
// The one thread of the hub that writes to the store: batches of many requests in one transaction.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

/// For metrics; sums since the start, but for the last five (now).
struct WriterCounts {
  std::uint64_t commits = 0;  ///< transactions that went well
  std::uint64_t batches = 0;  ///< in them
  std::uint64_t failures = 0;
  double store_s = 0;  ///< spent in Store::add
  double wait_s = 0;   ///< of batches, from their arrival to the begin of their transaction
  std::size_t queued = 0;
  std::size_t places = 0;        ///< reserved: being judged, queued or written
  std::size_t place_bytes = 0;   ///< of them
  std::optional<Error> failing;  ///< of the last write; nullopt: it went well
  bool failing_batches = false;  ///< batches have failed since the last write that went well
};

/// All calls are thread safe.
class Writer {
 public:
  struct Options {
    std::size_t most_places = 64;
    std::size_t most_bytes = 256u << 20;
    std::size_t commit_batches = 64;       ///< at most in one transaction
    std::size_t commit_bytes = 32u << 20;  ///< of their bodies
    double wait_s = 30;                    ///< that a caller waits for its write
  };
  /// Opens the store at its first write, and again after it failed. `changed` is called by its thread after
  /// each write.
  Writer(OpenStore open, Options options, std::function<void()> changed = {});
  /// Ends like stop().
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// The right to write one batch, and the memory for judging it; given back with the object.
  class Place {
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class Writer;
    Place(Writer& writer, std::size_t bytes) : writer_(&writer), bytes_(bytes) {}
    Writer* writer_;
    std::size_t bytes_;
  };
  /// nullopt: too many, or too large together. One is always let in where there is none.
  std::optional<Place> reserve(std::size_t bytes);

  /// Returns when it is durable, with the batch as it was given. Errors of Store::add; `timeout` after
  /// wait_s: it is not known whether it was stored. `unavailable` after stop().
  struct Written {
    IncomingBatch batch;
    BatchOutcome outcome;
  };
  Result<Written> add(Place place, IncomingBatch batch);
  /// Another write, in its turn, by the same thread.
  Status run(std::function<Status(Store&)> work);

  WriterCounts counts() const;
  /// Writes what was queued, takes nothing more, ends the thread.
  void stop();

 private:
  struct Job;
  Status wait(const std::shared_ptr<Job>& job);
  void release(std::size_t bytes);
  void loop();
  std::vector<std::shared_ptr<Job>> next_group();
  Store* open_if_needed(const std::vector<std::shared_ptr<Job>>& group);
  void write(const std::vector<std::shared_ptr<Job>>& group);
  void write_batches(Store& store, const std::vector<std::shared_ptr<Job>>& group);
  void finish(Job& job, Status status);
  void note_success();
  void note_failure(const Error& error, bool of_batches);

  const OpenStore open_;
  const Options options_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::shared_ptr<Job>> queue_;
  WriterCounts counts_;
  bool stopping_ = false;
  std::unique_ptr<Store> store_;  ///< the thread's alone
  std::thread thread_;
};

}  // namespace furlong::fleet
