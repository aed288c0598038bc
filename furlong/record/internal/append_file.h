#pragma once
// A file that lines are appended to, behind a seam: the tests put one here whose disk is full or broken.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong::record::internal {

/// Errors carry no path: append_line adds it.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  virtual Result<std::uint64_t> size() = 0;
  /// Whether it holds bytes and the last is no newline.
  virtual Result<bool> torn() = 0;
  /// At the end; may write a part and then answer with the bytes written.
  virtual Result<std::size_t> write(std::string_view bytes) = 0;
  virtual Status truncate(std::uint64_t size) = 0;
  /// To the disk, the folder's entry with it.
  virtual Status sync() = 0;
};

/// Opens (or makes) the file and holds an exclusive lock on it while the object lives; waits up to timeout_s
/// for it.
Result<std::unique_ptr<AppendFile>> open_append_file(const std::filesystem::path& path, double timeout_s);

/// Appends `line` and a newline, all or nothing.
Status append_line(AppendFile& file, std::string_view line);

}  // namespace furlong::record::internal
