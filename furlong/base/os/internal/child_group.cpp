#include "furlong/base/os/internal/child_group.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"

namespace furlong::internal {
namespace {

namespace fs = std::filesystem;

// The kernel's files take one write and answer at its end.
bool put(const fs::path& file, std::string_view text) {
  if (std::error_code error; !fs::exists(file, error)) return false;  // never to be made by us
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

bool lists_memory(const fs::path& file) {
  std::ifstream in(file);
  for (std::string word; in >> word;)
    if (word == "memory") return true;
  return false;
}

// "oom_kill 1" in a file of such lines.
std::uint64_t number_of(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  std::string name;
  for (std::uint64_t value = 0; in >> name >> value;)
    if (name == key) return value;
  return 0;
}

std::optional<fs::path> own_group(std::string_view membership, const fs::path& root) {
  for (const std::string& line : split(membership, '\n'))
    if (line.starts_with("0::/")) return root / fs::path(line.substr(4)).relative_path();
  return std::nullopt;
}

}  // namespace

std::optional<ChildGroup> ChildGroup::make(std::string_view membership, const fs::path& root,
                                           std::uint64_t memory_bytes,
                                           const std::function<void(const fs::path&)>& made) {
  const auto own = own_group(membership, root);
  if (!own) return std::nullopt;
  std::vector<fs::path> parents;
  if (own->lexically_normal() != root.lexically_normal()) parents.push_back(own->parent_path());
  parents.push_back(*own);
  for (const fs::path& parent : parents) {
    // Groups whose members count memory: a group that has processes of its own cannot be made one.
    if (!lists_memory(parent / "cgroup.subtree_control")) continue;
    static std::atomic<unsigned> number{0};
    std::error_code error;
    const fs::path path = parent / fmt::format("furlong-{}-{}", getpid(), number++);
    if (!fs::create_directory(path, error)) continue;
    if (made) made(path);
    ChildGroup group(path);
    if (!fs::exists(path / "memory.peak", error) || access((path / "cgroup.procs").c_str(), W_OK) != 0)
      continue;
    if (memory_bytes != 0) {
      if (!put(path / "memory.max", std::to_string(memory_bytes))) continue;
      // Swapped memory would not count; and all of the tree ends, not whichever of it was the largest.
      put(path / "memory.swap.max", "0");
      put(path / "memory.oom.group", "1");
    }
    return group;
  }
  return std::nullopt;
}

ChildGroup::ChildGroup(ChildGroup&& other) noexcept : path_(std::exchange(other.path_, fs::path())) {}

ChildGroup::~ChildGroup() {
  if (path_.empty()) return;
  kill();
  // Not before all that was killed is gone.
  constexpr int kAttempts = 50;
  for (int attempt = 0; attempt < kAttempts && rmdir(path_.c_str()) != 0 && errno == EBUSY; ++attempt)
    system_clock().sleep_ns(2'000'000);
}

std::uint64_t ChildGroup::peak_bytes() const {
  std::ifstream in(path_ / "memory.peak");
  std::uint64_t value = 0;
  in >> value;
  return value;
}

bool ChildGroup::killed_for_memory() const { return number_of(path_ / "memory.events", "oom_kill") != 0; }

void ChildGroup::kill() { put(path_ / "cgroup.kill", "1"); }

}  // namespace furlong::internal
