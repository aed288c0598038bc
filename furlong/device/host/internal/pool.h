#pragma once
// The threads that run a grid.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace furlong::device::host {

/// A fixed set of threads, the caller being one of them; threads start at the first run that needs them.
/// One run at a time.
class Pool {
 public:
  /// The work between `begin` and `end`, done by thread number `worker` (0: the caller).
  using Work = std::function<void(std::uint64_t begin, std::uint64_t end, int worker)>;

  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  /// Threads besides the caller that the last run had: fewer than threads() - 1 where the system refuses
  /// them.
  std::size_t helpers() const { return workers_.size(); }
  /// Covers [0, count) exactly once in chunks that the threads take as they become free; returns when all
  /// is done. `work` must not throw.
  void run(std::uint64_t count, const Work& work);

 private:
  void start();
  void serve(std::stop_token stop, int worker);
  void take_chunks(int worker);

  const int threads_;
  bool started_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  std::uint64_t generation_ = 0;  // guarded by mutex_, as is busy_
  int busy_ = 0;
  const Work* work_ = nullptr;  // written before generation_ moves, read after
  std::uint64_t count_ = 0;
  std::uint64_t chunk_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::vector<std::jthread> workers_;  // last: joined before the rest goes
};

}  // namespace furlong::device::host
