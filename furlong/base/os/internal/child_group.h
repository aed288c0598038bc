#pragma once
// A control group (version 2) of one child's own, by which the system itself counts and limits the memory of
// the child's whole tree.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

namespace furlong::internal {

class ChildGroup {
 public:
  /// Beside this process's own group, or below it, whichever may be written to and counts memory; nothing
  /// where neither may. `membership` is the text of /proc/self/cgroup, `root` where the hierarchy is mounted
  /// (/sys/fs/cgroup); `memory_bytes` 0: no limit. `made` is told of the new folder before it is looked into
  /// (a test puts there what the system does).
  static std::optional<ChildGroup> make(std::string_view membership, const std::filesystem::path& root,
                                        std::uint64_t memory_bytes,
                                        const std::function<void(const std::filesystem::path&)>& made = {});
  /// Kills what is left in the group and removes it.
  ~ChildGroup();
  ChildGroup(ChildGroup&& other) noexcept;
  ChildGroup& operator=(ChildGroup&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// memory.peak: with what the system cached of files for the tree.
  std::uint64_t peak_bytes() const;
  /// Whether the limit made the system kill in it (memory.events).
  bool killed_for_memory() const;
  void kill();

 private:
  explicit ChildGroup(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace furlong::internal
