#pragma once
// The end of what write_atomic does, for files that others have written (databases).

#include <filesystem>

#include "furlong/base/error.h"

namespace furlong {

/// Gives a finished file its name within the same folder: it is on the disk to the last byte before, and its
/// name after. `invalid`: the name is another file's, which stays, and so does the finished one. Errors as of
/// Files.
Status settle_file(const std::filesystem::path& finished, const std::filesystem::path& path);

}  // namespace furlong
