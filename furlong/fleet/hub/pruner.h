#pragma once
// Forgets old races once an hour, beside the intake: with a store and a thread of its own, since the first
// time may take minutes. The store does it in steps, between which batches take their turn.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::fleet {

class Pruner {
 public:
  using Say = std::function<void(LogLevel, std::string_view)>;
  /// `keep_days` 0: nothing is ever forgotten.
  Pruner(double keep_days, OpenStore open, Clock& clock, Say say);
  ~Pruner();  ///< stops
  Pruner(const Pruner&) = delete;
  Pruner& operator=(const Pruner&) = delete;

  void start();  ///< its thread
  /// After the step that it is at; the rest is for the next start.
  void stop();
  /// Forgets what is due; by the thread, and by tests without one.
  void step(const std::stop_token& stop = {});
  std::uint64_t forgotten() const { return forgotten_; }  ///< races since the start; any thread

 private:
  Result<std::uint64_t> prune(const std::stop_token& stop);

  const double keep_days_;
  const OpenStore open_;
  Clock& clock_;
  const Say say_;
  std::int64_t next_ns_;
  std::atomic<std::uint64_t> forgotten_ = 0;
  std::jthread thread_;
};

}  // namespace furlong::fleet
