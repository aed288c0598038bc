#include "furlong/base/os/clock.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace furlong {
namespace {

class SystemClock : public Clock {
 public:
  std::int64_t now_ns() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  std::int64_t wall_us() override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  void sleep_ns(std::int64_t duration_ns) override {
    if (duration_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(duration_ns));
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

std::int64_t FakeClock::now_ns() { return ns_; }
std::int64_t FakeClock::wall_us() { return ns_ / 1000; }
void FakeClock::sleep_ns(std::int64_t duration_ns) {
  if (duration_ns > 0) ns_ += duration_ns;
}

std::string iso_time(std::int64_t wall_us) {
  using namespace std::chrono;
  // Calendar arithmetic rather than gmtime: no locale, no shared buffer.
  const sys_seconds time{floor<seconds>(microseconds(wall_us))};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace furlong
