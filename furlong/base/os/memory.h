#pragma once
// What memory there is and what this process has used.

#include <cstdint>

namespace furlong {

/// Highest resident set of this process so far (VmHWM), in bytes; 0 where the system does not say.
std::uint64_t peak_resident_bytes();
/// The same of another process; 0 as well when it has ended.
std::uint64_t peak_resident_bytes(int pid);
/// MemAvailable, or what a container or batch job (control group) leaves of it, in bytes; 0 where the system
/// does not say.
std::uint64_t available_memory_bytes();
std::uint64_t total_memory_bytes();
/// Involuntary context switches of the calling thread so far: a race heat during which it grew was
/// descheduled.
std::uint64_t involuntary_switches();

}  // namespace furlong
