#pragma once
// Time behind a seam, so that every race and schedule can be replayed on a virtual clock.

#include <atomic>
#include <cstdint>
#include <string>

namespace furlong {

/// Steady nanoseconds for intervals, wall time for stamps. Implementations are thread safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() = 0;
  /// Microseconds since 1970 UTC.
  virtual std::int64_t wall_us() = 0;
  virtual void sleep_ns(std::int64_t duration_ns) = 0;
  double now_ms() { return static_cast<double>(now_ns()) * 1e-6; }
};

/// The machine's clock; lives for the whole program.
Clock& system_clock();

/// Starts at 0 (wall time too: 1970) and moves only when told to or slept on. Thread safe.
class FakeClock : public Clock {
 public:
  std::int64_t now_ns() override;
  std::int64_t wall_us() override;
  void sleep_ns(std::int64_t duration_ns) override;
  void advance_ns(std::int64_t duration_ns) { sleep_ns(duration_ns); }

 private:
  std::atomic<std::int64_t> ns_{0};
};

/// "2026-03-01T12:00:00Z" from microseconds since 1970.
std::string iso_time(std::int64_t wall_us);

}  // namespace furlong
