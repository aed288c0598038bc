#include "furlong/worker/device_lock.h"

namespace furlong::worker {

double DeviceLock::acquire() {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = next_++;
  if (mine == serving_) return 0;
  const double from_ms = clock_.now_ms();
  turn_.wait(lock, [&] { return mine == serving_; });
  return clock_.now_ms() - from_ms;
}

void DeviceLock::release() {
  {
    const std::lock_guard lock(mutex_);
    ++serving_;
  }
  turn_.notify_all();
}

bool DeviceLock::wanted() const {
  const std::lock_guard lock(mutex_);
  return next_ > serving_ + 1;
}

}  // namespace furlong::worker
