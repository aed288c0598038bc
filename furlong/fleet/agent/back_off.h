#pragma once
// Waits that double from one to the other.

#include <algorithm>
#include <cstdint>

#include "furlong/base/os/clock.h"

namespace furlong::fleet {

class BackOff {
 public:
  BackOff(Clock& clock, double first_s, double longest_s)
      : clock_(&clock), first_s_(first_s), longest_s_(longest_s) {}
  bool due() const { return clock_->now_ns() >= next_ns_; }
  void failed() {
    wait_s_ = wait_s_ == 0 ? first_s_ : std::min(longest_s_, wait_s_ * 2);
    next_ns_ = clock_->now_ns() + static_cast<std::int64_t>(wait_s_ * 1e9);
  }
  void succeeded() { wait_s_ = next_ns_ = 0; }

 private:
  Clock* clock_;
  double first_s_, longest_s_;
  double wait_s_ = 0;
  std::int64_t next_ns_ = 0;
};

}  // namespace furlong::fleet
