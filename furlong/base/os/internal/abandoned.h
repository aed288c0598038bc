#pragma once

#include <cstddef>
#include <filesystem>

namespace furlong::internal {

/// Removes the temporary folders "furlong-…" of this user in `parent` that are older than `older_than_s` and
/// that no living program holds: those of programs that were killed. Returns how many. Thread safe, also
/// against other processes.
std::size_t remove_abandoned_folders(const std::filesystem::path& parent, double older_than_s);

}  // namespace furlong::internal
