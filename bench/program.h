#pragma once
// The built furlong program, for benches that drive it as a user does.

#include <filesystem>

#include "furlong/base/error.h"

namespace furlong::bench {

/// build/<preset>/furlong of the bench that runs, which is below build/<preset>. `unavailable` when it was
/// not built.
Result<std::filesystem::path> program();

}  // namespace furlong::bench
