#pragma once
// Which headers a source reaches, so that hashes and packs cover them.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/program/program.h"

namespace furlong::program::internal {

/// One #include line.
struct Include {
  std::string path;
  bool quoted = false;  ///< "x.h" rather than <x.h>
};
/// The #include lines of a text with a literal path, in order. Lines under any #if count too: which of them a
/// compiler takes is not known here.
std::vector<Include> includes_of(std::string_view text);

/// Headers reached from `text`, which stands in `source_folder` (empty: in none): quoted ones beside the
/// including file first, then all in `include_folders`. What is not found there belongs to the compiler and
/// is left out. `exhausted` over 2000 headers or 64 MiB.
Result<std::vector<Header>> read_headers(Files& files, std::string_view text,
                                         const std::filesystem::path& source_folder,
                                         const std::vector<std::filesystem::path>& include_folders);

}  // namespace furlong::program::internal
