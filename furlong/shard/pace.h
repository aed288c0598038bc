#pragma once
// Feeds a Progress: counts, rates, time left and who has been at work for longest. Thread safe.

#include <map>
#include <mutex>
#include <string>

#include "furlong/base/os/clock.h"
#include "furlong/shard/progress.h"

namespace furlong::shard {

class Pace {
 public:
  Pace(std::string step, std::uint64_t total, Progress progress, Clock& clock = system_clock());

  /// `total` may grow as work appears.
  void add_total(std::uint64_t more);
  /// Something long begins; the returned number ends it.
  std::uint64_t begin(std::string what);
  /// It is at something else now, since now.
  void rename(std::uint64_t running, const std::string& what);
  void finish(std::uint64_t running);
  /// Reports at most every 0.2 s.
  void advance(std::uint64_t done);
  /// The last report, in any case.
  void end();

 private:
  struct Running {
    std::string what;
    std::int64_t since_ns;
  };
  void report(std::int64_t now_ns);

  std::mutex mutex_;
  const Progress progress_;
  Clock& clock_;
  const std::int64_t start_ns_;
  std::int64_t reported_ns_;
  ProgressState state_;
  std::map<std::uint64_t, Running> running_;  // in no order of time, as they are renamed
  std::uint64_t next_ = 0;
};

}  // namespace furlong::shard
