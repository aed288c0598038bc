#pragma once
// What a container or a batch job lets this process have of the machine's memory.

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace furlong::internal {

/// Bytes that the tightest of the process's control groups still grants, with the page cache that the system
/// would give back counted as free; UINT64_MAX where none limits it. `membership` is the text of
/// /proc/self/cgroup, `root` where the hierarchies are mounted (/sys/fs/cgroup); versions 1 and 2.
std::uint64_t control_group_available_bytes(std::string_view membership, const std::filesystem::path& root);

}  // namespace furlong::internal
