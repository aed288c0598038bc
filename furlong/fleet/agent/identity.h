#pragma once
// The machine's own key, made once and kept in the data folder.

#include <filesystem>

#include "furlong/base/error.h"
#include "furlong/base/os/file.h"
#include "furlong/base/sign.h"

namespace furlong {
class Clock;
}

namespace furlong::fleet {

/// Reads the secret key of `file`, or makes one there (mode 0600) when nothing is there. A file that holds
/// something else is `corrupt`: a new key would be another machine, so that is for a person to decide.
Result<KeyPair> machine_key(Files& files, const std::filesystem::path& file);

/// For what must not repeat between machines and starts (ids, jitter): of the key, of both clocks, and of
/// `more`, which a program takes from the system's random source.
std::uint64_t agent_seed(const PublicKey& key, Clock& clock, std::uint64_t more);

}  // namespace furlong::fleet
