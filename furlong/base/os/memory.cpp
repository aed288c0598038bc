#include "furlong/base/os/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "furlong/base/os/internal/control_group.h"

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

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A file that holds one number; nothing for "max" or no file.
std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  const std::string text = whole_file(file);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// "inactive_file 12345" in a file of such lines; 0 when absent.
std::uint64_t number_of(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in(file);
  std::string name;
  for (std::uint64_t value = 0; in >> name >> value;)
    if (name == key) return value;
  return 0;
}

/// Names of the files of one version of control groups.
struct GroupFiles {
  const char *limit, *used, *cache_key;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

std::uint64_t available_in(const std::filesystem::path& group, const GroupFiles& files) {
  const auto limit = number_in(group / files.limit);
  const auto used = number_in(group / files.used);
  if (!limit || !used) return UINT64_MAX;
  const std::uint64_t cache = number_of(group / "memory.stat", files.cache_key);
  const std::uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

}  // namespace

namespace internal {

std::uint64_t control_group_available_bytes(std::string_view membership, const std::filesystem::path& root) {
  std::uint64_t available = UINT64_MAX;
  for (std::size_t at = 0; at < membership.size();) {
    const std::size_t end = std::min(membership.find('\n', at), membership.size());
    // "4:memory:/job/step", in version 2 "0::/job/step"
    const std::string_view line = membership.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool version_2 = controllers.empty();
    if (!version_2 && controllers != "memory") continue;
    // A limit of any group above holds as well. In a container the path may be the host's and the root be
    // the container's own group: what is not there limits nothing, and the root is looked at in any case.
    const std::filesystem::path mount = version_2 ? root : root / "memory";
    for (std::filesystem::path group(line.substr(second + 1));; group = group.parent_path()) {
      available =
          std::min(available, available_in(mount / group.relative_path(), version_2 ? kVersion2 : kVersion1));
      if (!group.has_relative_path()) break;
    }
  }
  return available;
}

}  // namespace internal

std::uint64_t peak_resident_bytes() { return kilobytes_line("/proc/self/status", "VmHWM"); }
std::uint64_t peak_resident_bytes(int pid) {
  return kilobytes_line(("/proc/" + std::to_string(pid) + "/status").c_str(), "VmHWM");
}
std::uint64_t available_memory_bytes() {
  const std::uint64_t machine = kilobytes_line("/proc/meminfo", "MemAvailable");
  return std::min(machine,
                  internal::control_group_available_bytes(whole_file("/proc/self/cgroup"), "/sys/fs/cgroup"));
}
std::uint64_t total_memory_bytes() { return kilobytes_line("/proc/meminfo", "MemTotal"); }

std::uint64_t own_memory_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0, resident = 0, shared = 0;  // in pages
  if (!(in >> size >> resident >> shared) || shared > resident) return 0;
  return (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

OwnMemoryWatch::OwnMemoryWatch() {
  look();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      look();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

void OwnMemoryWatch::look() const {
  const std::uint64_t now_bytes = own_memory_bytes();
  std::uint64_t highest = peak_bytes_.load();
  while (now_bytes > highest && !peak_bytes_.compare_exchange_weak(highest, now_bytes)) {
  }
}

std::uint64_t OwnMemoryWatch::peak_bytes() const {
  look();
  return peak_bytes_.load();
}

std::uint64_t involuntary_switches() {
  rusage usage{};
  // The calling thread's own: a heat's thread is what must not have been descheduled.
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

}  // namespace furlong
