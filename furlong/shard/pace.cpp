#include "furlong/shard/pace.h"

namespace furlong::shard {
namespace {

constexpr std::int64_t kInterval_ns = 200'000'000;

}  // namespace

Pace::Pace(std::string step, std::uint64_t total, Progress progress, Clock& clock)
    : progress_(std::move(progress)), clock_(clock), start_ns_(clock.now_ns()), reported_ns_(start_ns_) {
  state_.step = std::move(step);
  state_.total = total;
}

void Pace::add_total(std::uint64_t more) {
  const std::scoped_lock lock(mutex_);
  state_.total += more;
}

std::uint64_t Pace::begin(std::string what) {
  const std::scoped_lock lock(mutex_);
  running_[next_] = {std::move(what), clock_.now_ns()};
  return next_++;
}

void Pace::rename(std::uint64_t running, const std::string& what) {
  const std::scoped_lock lock(mutex_);
  if (progress_) running_[running] = {what, clock_.now_ns()};
}

void Pace::finish(std::uint64_t running) {
  const std::scoped_lock lock(mutex_);
  running_.erase(running);
}

void Pace::advance(std::uint64_t done) {
  const std::scoped_lock lock(mutex_);
  state_.done += done;
  if (!progress_) return;
  const std::int64_t now_ns = clock_.now_ns();
  if (now_ns - reported_ns_ >= kInterval_ns) report(now_ns);
}

void Pace::end() {
  const std::scoped_lock lock(mutex_);
  if (progress_) report(clock_.now_ns());
}

void Pace::report(std::int64_t now_ns) {
  reported_ns_ = now_ns;
  const double seconds = static_cast<double>(now_ns - start_ns_) * 1e-9;
  state_.rate = seconds > 0 ? static_cast<double>(state_.done) / seconds : 0;
  state_.seconds_left = state_.rate > 0 && state_.total >= state_.done
                            ? static_cast<double>(state_.total - state_.done) / state_.rate
                            : -1;
  const Running* heaviest = nullptr;
  for (const auto& [number, running] : running_)
    if (heaviest == nullptr || running.since_ns < heaviest->since_ns) heaviest = &running;
  state_.heaviest = heaviest == nullptr ? "" : heaviest->what;
  state_.heaviest_seconds = heaviest == nullptr ? 0 : static_cast<double>(now_ns - heaviest->since_ns) * 1e-9;
  progress_(state_);
}

}  // namespace furlong::shard
