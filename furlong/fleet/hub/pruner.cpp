#include "furlong/fleet/hub/pruner.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace furlong::fleet {
namespace {

constexpr double day_us = 86'400e6;
constexpr std::int64_t every_ns = 3'600'000'000'000;
constexpr std::int64_t after_failure_ns = 60'000'000'000;
constexpr std::chrono::seconds look_every{1};  // at the clock, which may be a test's

}  // namespace

Pruner::Pruner(double keep_days, OpenStore open, Clock& clock, Say say)
    : keep_days_(keep_days),
      open_(std::move(open)),
      clock_(clock),
      say_(std::move(say)),
      next_ns_(clock.now_ns()) {}

Pruner::~Pruner() { stop(); }

void Pruner::start() {
  if (keep_days_ <= 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    while (!stop.stop_requested()) {
      step(stop);
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, look_every, [] { return false; });
    }
  });
}

void Pruner::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Pruner::step(const std::stop_token& stop) {
  if (keep_days_ <= 0 || clock_.now_ns() < next_ns_) return;
  const auto gone = prune(stop);
  next_ns_ = clock_.now_ns() + (gone ? every_ns : after_failure_ns);
  if (!gone)
    say_(LogLevel::error, fmt::format("old races were not forgotten: {}", gone.error().text()));
  else if (*gone > 0)
    say_(LogLevel::info, fmt::format("{} races older than {:g} days are forgotten", *gone, keep_days_));
}

Result<std::uint64_t> Pruner::prune(const std::stop_token& stop) {
  const std::int64_t before_us = clock_.wall_us() - static_cast<std::int64_t>(keep_days_ * day_us);
  FURLONG_TRY(const auto store, open_());
  FURLONG_TRY(const std::uint64_t gone, store->prune(before_us, stop));
  forgotten_ += gone;
  return gone;
}

}  // namespace furlong::fleet
