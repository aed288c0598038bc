#include "furlong/base/os/memory.h"

#include <sys/resource.h>

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace furlong {
namespace {

// "VmHWM:     13604 kB" → bytes.
std::uint64_t kilobytes_line(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    const std::size_t first = line.find_first_of("0123456789");
    if (first == std::string::npos) return 0;
    std::uint64_t kilobytes = 0;
    std::from_chars(line.data() + first, line.data() + line.size(), kilobytes);
    return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

std::uint64_t peak_resident_bytes() { return kilobytes_line("/proc/self/status", "VmHWM"); }
std::uint64_t peak_resident_bytes(int pid) {
  return kilobytes_line(("/proc/" + std::to_string(pid) + "/status").c_str(), "VmHWM");
}
std::uint64_t available_memory_bytes() { return kilobytes_line("/proc/meminfo", "MemAvailable"); }
std::uint64_t total_memory_bytes() { return kilobytes_line("/proc/meminfo", "MemTotal"); }

std::uint64_t involuntary_switches() {
  rusage usage{};
  // The calling thread's own: a heat's thread is what must not have been descheduled.
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

}  // namespace furlong
