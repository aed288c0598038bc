#include "furlong/base/os/process_tree.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;

struct Stat {
  int parent = 0;
  std::uint64_t started = 0, resident_bytes = 0;
};

// Nothing for one that is gone, and for one that has ended and only waits to be collected.
std::optional<Stat> stat_of(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text, '\0');
  // The name, in parentheses, may have any character; behind it only numbers follow.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return std::nullopt;
  const std::vector<std::string> fields = split(trim(std::string_view(text).substr(name_end + 2)), ' ');
  constexpr std::size_t kState = 0, kParent = 1, kStarted = 19, kResident = 21;  // proc(5) counts from 3
  if (fields.size() <= kResident || fields[kState] == "Z" || fields[kState] == "X") return std::nullopt;
  const auto number = [&](std::size_t field) {
    return static_cast<std::uint64_t>(parse_integer(fields[field]).value_or(0));
  };
  static const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return Stat{static_cast<int>(number(kParent)), number(kStarted), number(kResident) * page_bytes};
}

// "Pss:       1234 kB", without which (no permission, an older kernel) the resident set stands for it.
std::uint64_t proportional_bytes(int pid, std::uint64_t resident_bytes) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string word; in >> word;)
    if (std::uint64_t kilobytes = 0; word == "Pss:" && in >> kilobytes) return kilobytes * 1024;
  return resident_bytes;
}

/// Who is whose child.
class Children {
 public:
  std::vector<int> of(int pid) {
    static const bool listed = fs::exists("/proc/thread-self/children");
    return listed ? listed_of(pid) : searched_of(pid);
  }

 private:
  // Each thread has children of its own.
  static std::vector<int> listed_of(int pid) {
    std::vector<int> children;
    std::error_code error;
    for (fs::directory_iterator task("/proc/" + std::to_string(pid) + "/task", error), end;
         !error && task != end; task.increment(error)) {
      std::ifstream in(task->path() / "children");
      for (int child = 0; in >> child;) children.push_back(child);
    }
    return children;
  }

  // For kernels that do not list them: all processes, once a look.
  std::vector<int> searched_of(int pid) {
    if (!searched_) {
      searched_ = true;
      std::error_code error;
      for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
           entry.increment(error)) {
        const std::string name = entry->path().filename();
        int number = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), number).ptr != name.data() + name.size())
          continue;
        if (const auto stat = stat_of(number)) by_parent_[stat->parent].push_back(number);
      }
    }
    return by_parent_[pid];
  }

  bool searched_ = false;
  std::map<int, std::vector<int>> by_parent_;
};

}  // namespace

ProcessTree::ProcessTree(int leader) {
  if (const auto stat = stat_of(leader)) seen_[leader] = {stat->started, stat->resident_bytes};
}

void ProcessTree::look() {
  std::map<int, Seen> now;
  std::vector<int> queue;
  for (const auto& [pid, before] : seen_) queue.push_back(pid);
  Children children;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const int pid = queue[next];
    if (now.contains(pid)) continue;
    const auto stat = stat_of(pid);
    if (!stat) continue;
    const auto before = seen_.find(pid);
    if (before != seen_.end() && before->second.started != stat->started && next < seen_.size()) continue;
    now[pid] = {stat->started, stat->resident_bytes};
    for (const int child : children.of(pid)) queue.push_back(child);
  }
  seen_ = std::move(now);
}

std::uint64_t ProcessTree::sample() {
  constexpr std::uint64_t kSmall = 16u << 20;
  look();
  std::uint64_t sum = 0, largest = 0;
  for (const auto& [pid, process] : seen_) {
    sum += process.resident_bytes;
    largest = std::max(largest, process.resident_bytes);
  }
  if (sum > peak_bytes_ && sum - largest > kSmall + largest / 8) {
    std::uint64_t proportional = 0;
    for (const auto& [pid, process] : seen_) proportional += proportional_bytes(pid, process.resident_bytes);
    // Read one after another while all of them go on: never more than what was seen at first.
    sum = std::min(sum, proportional);
  }
  peak_bytes_ = std::max(peak_bytes_, sum);
  return sum;
}

bool ProcessTree::kill() {
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    look();
    if (seen_.empty()) return true;
    for (const auto& [pid, process] : seen_) ::kill(pid, SIGKILL);
    if (round > 0) system_clock().sleep_ns(1'000'000);  // the system needs a moment for a large one
  }
  return false;
}

}  // namespace furlong
