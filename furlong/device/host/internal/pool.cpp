#include "furlong/device/host/internal/pool.h"

#include <algorithm>
#include <system_error>

#include "furlong/base/log.h"

namespace furlong::device::host {

Pool::Pool(int threads) : threads_(std::max(1, threads)) {}

Pool::~Pool() {
  for (std::jthread& worker : workers_) worker.request_stop();
}

void Pool::start() {
  started_ = true;
  try {
    for (int worker = 1; worker < threads_; ++worker) {
      workers_.emplace_back([this, worker](std::stop_token stop) { serve(std::move(stop), worker); });
    }
  } catch (const std::system_error& error) {
    // A limit on threads (a container's) makes launches slower, not impossible.
    log_warning("the host device runs with {} of {} threads: {}", workers_.size() + 1, threads_,
                error.what());
  }
}

void Pool::take_chunks(int worker) {
  for (;;) {
    const std::uint64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (begin >= count_) return;
    (*work_)(begin, std::min(count_, begin + chunk_), worker);
  }
}

void Pool::serve(std::stop_token stop, int worker) {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [&] { return generation_ != seen; })) return;
      seen = generation_;
    }
    take_chunks(worker);
    std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void Pool::run(std::uint64_t count, const Work& work) {
  if (count == 0) return;
  if (!started_ && threads_ > 1 && count > 1) start();
  if (workers_.empty() || count == 1) {  // nothing to share: waking threads would cost more
    work(0, count, 0);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    // About sixteen chunks a thread: small enough to even out uneven blocks, and few enough that the
    // counter is not contended.
    chunk_ = std::max<std::uint64_t>(1, count / (static_cast<std::uint64_t>(threads_) * 16));
    next_.store(0, std::memory_order_relaxed);
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  wake_.notify_all();
  take_chunks(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

}  // namespace furlong::device::host
