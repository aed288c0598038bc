#pragma once
// The threads that run handlers, and the bounded queue before them.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace furlong::fleet {

/// Thread safe. Tasks must not throw.
class HandlerPool {
 public:
  using Task = std::move_only_function<void()>;
  HandlerPool(int threads, int most_waiting);
  ~HandlerPool() { stop(); }
  HandlerPool(const HandlerPool&) = delete;

  /// False where the queue is full or the pool is stopped; the task is then not taken.
  bool submit(Task&& task);
  bool is_full() const;
  /// Drops what waits, lets what runs end.
  void stop();

 private:
  void work();
  bool has_no_room() const;  // under the lock
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> waiting_;
  const std::size_t most_waiting_;
  const std::size_t most_running_;
  std::size_t running_ = 0;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace furlong::fleet
