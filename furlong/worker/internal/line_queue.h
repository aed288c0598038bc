#pragma once
// Lines on their way to a reader that may be slow: a thread writes them, and whoever makes them does not
// wait.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "furlong/base/error.h"

namespace furlong::worker {

/// Thread safe.
class LineQueue {
 public:
  /// `most_bytes`: full() from there on; what may be left out is left out from a tenth of it on.
  LineQueue(std::function<Status(std::string_view)> write, std::size_t most_bytes);
  /// Does not wait for a reader that does not read.
  ~LineQueue();

  /// `dispensable`: the next of its kind says the same (rate, status).
  void push(std::string line, bool dispensable);
  /// The maker should wait.
  bool full() const;
  /// The reader is gone; nothing is written any more.
  bool broken() const;
  std::size_t left_out() const;
  /// Waits until all is written, at most so long. Whether it is.
  bool drain(double limit_s);

 private:
  struct Shared;
  static void write_all(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;  // the thread's too: it may be left behind in a write that never returns
  std::size_t most_bytes_;
};

}  // namespace furlong::worker
