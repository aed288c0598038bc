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
#include "furlong/base/hash.h"

namespace furlong {

/// Errors name the path: absent → unavailable, no permission or read-only → denied, disk full →
/// exhausted, a folder or pipe where a file is wanted → invalid, else internal. Implementations are thread
/// safe.
class Files {
 public:
  virtual ~Files() = default;
  /// Whole file; `invalid` when it is larger than `max_bytes`, and when it is no regular file: a pipe or a
  /// device could be waited for, or read, for ever.
  virtual Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes = 1u << 30) = 0;
  /// BLAKE2b-256 of the whole file, with the errors of read, but in constant memory.
  virtual Result<Digest> hash(const std::filesystem::path& path, std::size_t max_bytes = 1u << 30) {
    FURLONG_TRY(const std::string bytes, read(path, max_bytes));
    return blake2b_256(bytes);
  }
  /// Temporary file in the same folder, fsync, rename, fsync of the folder: a reader sees the old
  /// bytes or the new ones, also after a crash. Parent folders are made. The temporary file is
  /// removed on failure. The mode of an existing file is kept, a symbolic link is followed, and what is
  /// no regular file (/dev/stdout) is written to directly; a pipe that nobody reads is `invalid`.
  virtual Status write_atomic(const std::filesystem::path& path, std::string_view bytes) = 0;
  /// As write_atomic, but only this user may read the file (mode 0600): for secret keys.
  virtual Status write_atomic_secret(const std::filesystem::path& path, std::string_view bytes) {
    return write_atomic(path, bytes);
  }
  virtual bool exists(const std::filesystem::path& path) = 0;
  /// File names in a folder, sorted; folders end in '/'.
  virtual Result<std::vector<std::string>> list(const std::filesystem::path& folder) = 0;
  /// A file or a folder with all in it; absent is no error.
  virtual Status remove(const std::filesystem::path& path) = 0;
};

Files& system_files();

/// In memory. `fault` is asked before every operation ("read", "write", "sync", "rename", "remove",
/// "list") and may return an Error. write_atomic asks for "write", "sync", "rename", and "sync" of the
/// parent folder, as the real one works. `fault` is called without the lock held and may use the files.
/// Folders exist while they have a file in them.
class FakeFiles : public Files {
 public:
  std::function<Status(std::string_view operation, const std::filesystem::path&)> fault;
  Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes = 1u << 30) override;
  Status write_atomic(const std::filesystem::path& path, std::string_view bytes) override;
  bool exists(const std::filesystem::path& path) override;
  Result<std::vector<std::string>> list(const std::filesystem::path& folder) override;
  Status remove(const std::filesystem::path& path) override;

 private:
  Status ask(std::string_view operation, const std::filesystem::path& path);
  std::mutex mutex_;
  std::map<std::string, std::string> files_;  // by normal path
};

/// A folder under $TMPDIR (or the system's temporary folder) that is removed when the object goes, and on
/// Ctrl-C (see interrupt.h). `internal` or `exhausted` when it cannot be made.
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

/// An advisory lock on a file (created if absent, and left there) held while the object lives; other
/// processes and other locks of this one wait, past timeout_s with `timeout`.
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
