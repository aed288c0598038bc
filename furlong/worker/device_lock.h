#pragma once
// One device, several users: whoever serves it holds it a chunk at a time, whoever prepares the next program
// a window at a time. First come, first served, so that neither starves.

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "furlong/base/os/clock.h"

namespace furlong::worker {

/// A fair lock. Not to be taken twice by one thread. Any thread may take it; whoever took it releases it.
class DeviceLock {
 public:
  explicit DeviceLock(Clock& clock) : clock_(clock) {}
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

  /// Waits for all who came before. Returns the milliseconds waited.
  double acquire();
  void release();
  /// Whether somebody waits for it now.
  bool wanted() const;

 private:
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ = 0, serving_ = 0;
};

/// Holds the lock while it lives.
class Holding {
 public:
  explicit Holding(DeviceLock& lock) : lock_(lock), waited_ms_(lock.acquire()) {}
  ~Holding() { lock_.release(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  double waited_ms() const { return waited_ms_; }

 private:
  DeviceLock& lock_;
  double waited_ms_;
};

}  // namespace furlong::worker
