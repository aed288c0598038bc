#pragma once
// What memory there is and what this process has used.

#include <atomic>
#include <cstdint>
#include <thread>

namespace furlong {

/// Highest resident set of this process so far (VmHWM), in bytes; 0 where the system does not say.
std::uint64_t peak_resident_bytes();
/// The same of another process; 0 as well when it has ended.
std::uint64_t peak_resident_bytes(int pid);
/// MemAvailable, or what a container or batch job (control group) leaves of it, in bytes; 0 where the system
/// does not say.
std::uint64_t available_memory_bytes();
std::uint64_t total_memory_bytes();
/// Memory of this process that is its own: resident, and no part of a mapped file, which the system can drop
/// and shares among all who map it. 0 where the system does not say.
std::uint64_t own_memory_bytes();

/// The highest own_memory_bytes() while it lives, looked at every millisecond by a thread of its own: the
/// system keeps no such mark. peak_bytes() may be called from any thread.
class OwnMemoryWatch {
 public:
  OwnMemoryWatch();
  ~OwnMemoryWatch() = default;
  OwnMemoryWatch(const OwnMemoryWatch&) = delete;
  OwnMemoryWatch& operator=(const OwnMemoryWatch&) = delete;
  std::uint64_t peak_bytes() const;

 private:
  void look() const;
  mutable std::atomic<std::uint64_t> peak_bytes_{0};
  std::jthread thread_;
};

/// Involuntary context switches of the calling thread so far: a race heat during which it grew was
/// descheduled.
std::uint64_t involuntary_switches();

}  // namespace furlong
