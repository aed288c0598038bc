#include "furlong/base/os/measured_process.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/internal/child_group.h"
#include "furlong/base/os/process_tree.h"

namespace furlong {
namespace {

std::string own_membership() {
  std::ifstream in("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Adds up the tree on a thread of its own, and kills it past the cap.
class Watchdog {
 public:
  Watchdog(Child& child, std::uint64_t cap_bytes)
      : child_(child),
        cap_bytes_(cap_bytes),
        tree_(child.pid()),
        thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  /// No more samples. Whatever left the group of the leader, which has ended, is killed.
  void end() {
    thread_.request_stop();
    thread_.join();
    tree_.kill();
  }
  std::uint64_t peak_bytes() const { return tree_.peak_bytes(); }

 private:
  void watch(const std::stop_token& stop) {
    std::int64_t period_ns = 500'000;
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      if (tree_.sample() > cap_bytes_ && cap_bytes_ != 0) {
        child_.interrupt();
        return;
      }
      period_ns = std::min(2 * period_ns, kSamplePeriodNs);
      wake.wait_for(lock, stop, std::chrono::nanoseconds(period_ns), [] { return false; });
    }
  }

  Child& child_;
  const std::uint64_t cap_bytes_;
  ProcessTree tree_;  // the thread's until end()
  std::jthread thread_;
};

}  // namespace

std::string_view memory_meter_name(MemoryMeter meter) {
  return meter == MemoryMeter::control_group ? "control group" : "sampled";
}

std::uint64_t address_space_limit(std::uint64_t memory_cap_bytes) {
  constexpr std::uint64_t kTimes = 8, kMore = 16ull << 30, kMost = 1ull << 62;
  return memory_cap_bytes > (kMost - kMore) / kTimes ? kMost : kTimes * memory_cap_bytes + kMore;
}

Result<MeasuredEnd> run_measured(const MeasuredRequest& request, Processes& processes) {
  MeasuredEnd measured;
  if (request.stop.stop_requested()) {
    measured.end.stopped = true;
    return measured;
  }
  const auto group = internal::ChildGroup::make(own_membership(), "/sys/fs/cgroup", request.memory_cap_bytes);
  ProcessRequest process = request.process;
  process.control_group = group ? group->path() : std::filesystem::path();
  process.address_space_bytes = 0;
  process.grace_s = 0;  // memory that is over its cap is not to grow on
  process.guarded = true;
  if (!group && request.memory_cap_bytes != 0 && !request.any_address_space)
    process.address_space_bytes = address_space_limit(request.memory_cap_bytes);

  const std::int64_t begin_ns = system_clock().now_ns();
  FURLONG_TRY(const std::unique_ptr<Child> child, processes.start(process));
  std::optional<Watchdog> watchdog;
  if (!group) watchdog.emplace(*child, request.memory_cap_bytes);
  {
    const std::stop_callback on_stop(request.stop, [&] { child->interrupt(); });
    measured.end = child->wait(request.timeout_s);
  }
  measured.seconds = static_cast<double>(system_clock().now_ns() - begin_ns) * 1e-9;
  if (group) {
    measured.meter = MemoryMeter::control_group;
    measured.peak_bytes = group->peak_bytes();
    measured.over_cap = request.memory_cap_bytes != 0 && group->killed_for_memory();
    return measured;
  }
  watchdog->end();
  measured.peak_bytes = std::max(watchdog->peak_bytes(), measured.end.peak_bytes);
  measured.over_cap = request.memory_cap_bytes != 0 && measured.peak_bytes > request.memory_cap_bytes;
  // "was stopped" is for whoever asked for the stop.
  if (measured.over_cap && !request.stop.stop_requested()) measured.end.stopped = false;
  return measured;
}

}  // namespace furlong
