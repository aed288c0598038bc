#pragma once

#include <cstddef>
#include <filesystem>

namespace furlong::internal {

/// Removes the temporary folders "furlong-…" of this user in `parent` that are older than `older_than_s` and
/// that no living program holds: those of programs that were killed. Returns how many. Thread safe, also
/// against other processes.
std::size_t remove_abandoned_folders(const std::filesystem::path& parent, double older_than_s);

/// Removes a folder with all in it, also one in which a process that was just killed is still making files:
/// it tries again for a moment (at most half a second). False when something stays.
bool remove_folder_stubbornly(const std::filesystem::path& folder);

}  // namespace furlong::internal
