#pragma once
// What stands in the way of the agent now, for its status; and which of it is worth a line in the log again.

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace furlong {
class Clock;
}

namespace furlong::fleet {

/// Thread safe.
class Problems {
 public:
  explicit Problems(Clock& clock) : clock_(clock) {}
  /// `what` ("status.json is not written") stands until over(), and `how` is its newest reason. True when it
  /// is to be logged: it is new, or was logged over a minute ago; what fails five times a second fills no
  /// disk.
  bool stands(std::string_view what, std::string_view how);
  void over(std::string_view what);
  /// "what: how", the newest last.
  std::vector<std::string> texts();

 private:
  struct One {
    std::string what, how;
    std::int64_t logged_ns = 0;
  };
  Clock& clock_;
  std::mutex mutex_;
  std::vector<One> list_;
};

}  // namespace furlong::fleet
