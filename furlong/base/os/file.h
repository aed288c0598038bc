#pragma once
// Files behind a seam, with one atomic writer and a fake that can fail at any step.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"

namespace furlong {

/// Errors name the path: absent → unavailable, no permission or read-only → denied, disk full →
/// exhausted, else internal. Implementations are thread safe.
class Files {
 public:
  virtual ~Files() = default;
  /// Whole file; `exhausted` when it is larger than `max_bytes`.
  virtual Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes = 1u << 30) = 0;
  /// Temporary file in the same folder, fsync, rename, fsync of the folder: a reader sees the old
  /// bytes or the new ones, also after a crash. Parent folders are made. The temporary file is
  /// removed on failure.
  virtual Status write_atomic(const std::filesystem::path& path, std::string_view bytes) = 0;
  virtual bool exists(const std::filesystem::path& path) = 0;
  /// File names in a folder, sorted; folders end in '/'.
  virtual Result<std::vector<std::string>> list(const std::filesystem::path& folder) = 0;
  /// A file or a folder with all in it; absent is no error.
  virtual Status remove(const std::filesystem::path& path) = 0;
};

Files& system_files();

/// In memory. `fault` is asked before every operation ("read", "write", "sync", "rename", "remove",
/// "list") and may return an Error.
class FakeFiles : public Files {
 public:
  std::function<Status(std::string_view operation, const std::filesystem::path&)> fault;
  Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes) override;
  Status write_atomic(const std::filesystem::path& path, std::string_view bytes) override;
  bool exists(const std::filesystem::path& path) override;
  Result<std::vector<std::string>> list(const std::filesystem::path& folder) override;
  Status remove(const std::filesystem::path& path) override;

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> files_;
};

/// A folder that is removed when the object goes, and on Ctrl-C (see interrupt.h). `internal` or
/// `exhausted` when it cannot be made.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(std::string_view prefix);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&&) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) noexcept;
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path);
  std::filesystem::path path_;
};

/// An advisory lock on a file (created if absent) held while the object lives; other processes wait.
class FileLock {
 public:
  static Result<FileLock> acquire(const std::filesystem::path& path, double timeout_s = 60);
  ~FileLock();
  FileLock(FileLock&&) noexcept;
  FileLock& operator=(FileLock&&) noexcept;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace furlong
