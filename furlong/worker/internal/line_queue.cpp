#include "furlong/worker/internal/line_queue.h"

#include <chrono>
#include <memory>

namespace furlong::worker {

struct LineQueue::Shared {
  std::function<Status(std::string_view)> write;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  std::size_t bytes = 0, left_out = 0;
  bool broken = false, ending = false, writing = false;
};

LineQueue::LineQueue(std::function<Status(std::string_view)> write, std::size_t most_bytes)
    : shared_(std::make_shared<Shared>()), most_bytes_(most_bytes) {
  shared_->write = std::move(write);
  std::thread(write_all, shared_).detach();
}

LineQueue::~LineQueue() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ending = true;
  }
  shared_->changed.notify_all();
}

void LineQueue::write_all(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->ending || !shared->lines.empty(); });
    if (shared->lines.empty()) return;
    const std::string line = std::move(shared->lines.front());
    shared->lines.pop_front();
    shared->writing = true;
    lock.unlock();
    const Status written = shared->write(line);
    lock.lock();
    shared->writing = false;
    shared->bytes -= line.size();
    if (!written) {
      shared->broken = true;
      shared->lines.clear();
      shared->bytes = 0;
    }
    shared->changed.notify_all();
    if (shared->broken) return;
  }
}

void LineQueue::push(std::string line, bool dispensable) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->broken) return;
    if (dispensable && shared_->bytes > most_bytes_ / 10) {
      ++shared_->left_out;
      return;
    }
    shared_->bytes += line.size();
    shared_->lines.push_back(std::move(line));
  }
  shared_->changed.notify_all();
}

bool LineQueue::full() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->bytes > most_bytes_;
}

bool LineQueue::broken() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->broken;
}

std::size_t LineQueue::left_out() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->left_out;
}

bool LineQueue::drain(double limit_s) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, std::chrono::duration<double>(limit_s), [&] {
    return shared_->broken || (shared_->lines.empty() && !shared_->writing);
  }) && !shared_->broken;
}

}  // namespace furlong::worker
