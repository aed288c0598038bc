#include "furlong/fleet/hub/internal/http/handler_pool.h"

#include <algorithm>

namespace furlong::fleet {

HandlerPool::HandlerPool(int threads, int most_waiting)
    : most_waiting_(static_cast<std::size_t>(std::max(most_waiting, 0))),
      most_running_(static_cast<std::size_t>(std::max(threads, 1))) {
  try {
    for (std::size_t i = 0; i < most_running_; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

bool HandlerPool::is_full() const {
  const std::lock_guard lock(mutex_);
  return has_no_room();
}

bool HandlerPool::has_no_room() const {
  // What a thread is free for does not wait.
  return waiting_.size() >= most_waiting_ + most_running_ - running_;
}

bool HandlerPool::submit(Task&& task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || has_no_room()) return false;
    waiting_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void HandlerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    ++running_;
    Task task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --running_;
  }
}

void HandlerPool::stop() {
  std::deque<Task> dropped;  // destroyed without the lock held
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
  }
  wake_.notify_all();
  threads_.clear();
}

}  // namespace furlong::fleet
