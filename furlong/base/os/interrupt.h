#pragma once
// Ctrl-C and SIGTERM as a stop token; temporary folders registered here are removed and child groups
// killed even when a second Ctrl-C ends the program at once.

#include <filesystem>
#include <stop_token>

namespace furlong {

/// Installs the handlers once (SIGINT, SIGTERM, and SIGHUP unless it is ignored, as under nohup) and
/// returns the token that the first signal stops. The token's callbacks run on a thread of their own.
/// The second signal cleans up and ends the process with 128 + signal. Only applications call this.
std::stop_token stop_on_interrupt();
/// The signal that stopped the token, or 0.
int interrupt_signal();

/// Used by TemporaryFolder and Child; safe to call from any thread. Folders may be registered before
/// they exist.
void register_for_cleanup(const std::filesystem::path& folder);
void unregister_from_cleanup(const std::filesystem::path& folder);
void register_child_group(int pid);
void unregister_child_group(int pid);

}  // namespace furlong
