#include "furlong/base/os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/internal/abandoned.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/settle.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;

Code code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Code::unavailable;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::denied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Code::exhausted;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return Code::invalid;
    default:
      return Code::internal;
  }
}

Error system_error(const fs::path& path, std::string_view doing, int number) {
  return fail(code_of(number), "{}: {}: {}", path.string(), doing, std::generic_category().message(number));
}

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  // 0, or the errno of the close: network file systems tell a failed write only there.
  int close() {
    const int result = ::close(std::exchange(number_, -1));
    return result == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int number_;
};

int open_retrying(const fs::path& path, int flags, mode_t mode = 0) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
  }
}

// 0 or an errno.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

// A name that no other process or thread uses at this moment; O_EXCL and mkdir settle the rest.
std::string unique_suffix() {
  static std::atomic<std::uint64_t> counter{0};
  Hasher hasher;
  const std::array<std::uint64_t, 3> parts = {static_cast<std::uint64_t>(::getpid()), counter++,
                                              static_cast<std::uint64_t>(system_clock().wall_us())};
  hasher.add({reinterpret_cast<const std::uint8_t*>(parts.data()), sizeof parts});
  return hasher.finish().hex().substr(0, 12);
}

Status sync_folder(const fs::path& folder) {
  Descriptor descriptor(open_retrying(folder, O_RDONLY | O_DIRECTORY));
  if (descriptor.get() < 0) return system_error(folder, "opening the folder to sync it", errno);
  // EINVAL: a file system that cannot sync folders, where there is nothing more to do.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL)
    return system_error(folder, "syncing the folder", errno);
  return {};
}

class SystemFiles : public Files {
 public:
  Result<std::string> read(const fs::path& path, std::size_t max_bytes) override {
    std::string bytes;
    FURLONG_CHECK(for_each_chunk(path, max_bytes, [&](std::string_view chunk) { bytes += chunk; }));
    return bytes;
  }

  Result<Digest> hash(const fs::path& path, std::size_t max_bytes) override {
    Hasher hasher;
    FURLONG_CHECK(
        for_each_chunk(path, max_bytes, [&](std::string_view chunk) { hasher.add(as_bytes(chunk)); }));
    return hasher.finish();
  }

  Status write_atomic(const fs::path& path, std::string_view bytes) override {
    return write(path, bytes, false);
  }
  Status write_atomic_secret(const fs::path& path, std::string_view bytes) override {
    return write(path, bytes, true);
  }

  bool exists(const fs::path& path) override {
    std::error_code error;
    return fs::exists(path, error);
  }

  Result<std::vector<std::string>> list(const fs::path& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      std::string name = entry->path().filename().string();
      if (entry->is_directory(ignored)) name += '/';
      names.push_back(std::move(name));
    }
    if (error) return system_error(folder, "listing", error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  Status remove(const fs::path& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error && error.value() != ENOENT) return system_error(path, "removing", error.value());
    return {};
  }

 private:
  template <class Use>
  static Status for_each_chunk(const fs::path& path, std::size_t max_bytes, Use use) {
    // Not blocking: the opening of a pipe would wait for its writer. Regular files know no difference.
    Descriptor descriptor(open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    const int number = errno;
    struct stat info{};
    if (descriptor.get() < 0) {
      // A socket cannot be opened at all.
      if (number == ENXIO && ::stat(path.c_str(), &info) == 0) return no_file(path, info.st_mode);
      return system_error(path, "opening", number);
    }
    if (::fstat(descriptor.get(), &info) != 0) return system_error(path, "opening", errno);
    if (!S_ISREG(info.st_mode)) return no_file(path, info.st_mode);
    const auto too_large = [&] {
      return fail(Code::invalid, "{}: is larger than the {} bytes allowed", path.string(), max_bytes);
    };
    // The size is a hint only: /proc says 0, and a file may grow while it is read.
    if (info.st_size > 0 && static_cast<std::uint64_t>(info.st_size) > max_bytes) return too_large();
    std::string buffer(std::clamp<std::size_t>(static_cast<std::size_t>(info.st_size) + 1, 4096, 1u << 20),
                       '\0');
    for (std::size_t total = 0;;) {
      const ssize_t got = ::read(descriptor.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error(path, "reading", errno);
      if (got == 0) return {};
      total += static_cast<std::size_t>(got);
      if (total > max_bytes) return too_large();
      use(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
    }
  }

  static Error no_file(const fs::path& path, mode_t mode) {
    if (S_ISDIR(mode)) return fail(Code::invalid, "{}: is a folder, not a file", path.string());
    return fail(Code::invalid, "{}: is a {}, not a file: give a regular file", path.string(),
                S_ISFIFO(mode)   ? "pipe"
                : S_ISSOCK(mode) ? "socket"
                                 : "device");
  }

  static Status write(fs::path path, std::string_view bytes, bool secret) {
    FURLONG_TRY(path, follow_links(path));
    struct stat info{};
    const bool there = ::stat(path.c_str(), &info) == 0;
    if (there && S_ISDIR(info.st_mode))
      return fail(Code::invalid, "{}: is a folder, not a file", path.string());
    if (there && !S_ISREG(info.st_mode)) return write_directly(path, bytes);
    const mode_t mode = secret ? 0600 : there ? info.st_mode & 07777 : 0;
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return system_error(folder, "making the folder", error.value());
    const fs::path temporary = folder / fmt::format(".{}.tmp", unique_suffix());
    const int failed = fill(temporary, bytes, mode);
    if (failed == 0 && ::rename(temporary.c_str(), path.c_str()) == 0) return sync_folder(folder);
    const int number = failed != 0 ? failed : errno;
    ::unlink(temporary.c_str());
    return system_error(path, "writing", number);
  }

  // The file that a symbolic link leads to, which need not be there (weakly_canonical would then stop at
  // the link, and the rename replace it).
  static Result<fs::path> follow_links(fs::path path) {
    static constexpr int most_links = 40;  // as the system's own limit
    for (int i = 0; i < most_links; ++i) {
      std::error_code error;  // also set for a file that is not there yet, which is no link
      if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
      const fs::path target = fs::read_symlink(path, error);
      if (error) return system_error(path, "following the link", error.value());
      path = path.parent_path() / target;  // an absolute target replaces all before it
    }
    return system_error(path, "following the link", ELOOP);
  }

  // Makes the temporary file, on the disk to the last byte; mode 0 means what the umask gives. 0 or an
  // errno.
  static int fill(const fs::path& temporary, std::string_view bytes, mode_t mode) {
    Descriptor descriptor(open_retrying(temporary, O_WRONLY | O_CREAT | O_EXCL, mode != 0 ? 0600 : 0666));
    if (descriptor.get() < 0) return errno;
    if (mode != 0 && ::fchmod(descriptor.get(), mode) != 0) return errno;
    if (const int number = write_all(descriptor.get(), bytes); number != 0) return number;
    if (::fsync(descriptor.get()) != 0) return errno;
    return descriptor.close();
  }

  // A pipe or a terminal: there are no old bytes to lose, and replacing /dev/null would be a disaster.
  static Status write_directly(const fs::path& path, std::string_view bytes) {
    // Not blocking: the opening of a pipe would wait for a reader, who may never come.
    Descriptor descriptor(open_retrying(path, O_WRONLY | O_NONBLOCK | O_NOCTTY));
    if (descriptor.get() < 0 && errno == ENXIO)
      return fail(Code::invalid, "{}: is a pipe or socket that nobody reads: start its reader first",
                  path.string());
    if (descriptor.get() < 0) return system_error(path, "opening", errno);
    // A reader who is there may be slower than we are.
    const int flags = ::fcntl(descriptor.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags & ~O_NONBLOCK) < 0)
      return system_error(path, "opening", errno);
    if (const int number = write_all(descriptor.get(), bytes); number != 0)
      return system_error(path, "writing", number);
    return {};
  }
};

std::string normal(const fs::path& path) {
  std::string text = path.lexically_normal().generic_string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Files& system_files() {
  static SystemFiles files;
  return files;
}

namespace {

/// 0, or an errno: EEXIST when the name is another file's.
int rename_to_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Not every file system knows how (NFS): a second name does the same.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Status settle_file(const fs::path& finished, const fs::path& path) {
  {
    Descriptor descriptor(open_retrying(finished, O_RDONLY));
    if (descriptor.get() < 0) return system_error(finished, "opening", errno);
    if (::fsync(descriptor.get()) != 0) return system_error(finished, "syncing", errno);
  }
  const int number = rename_to_new(finished, path);
  if (number == EEXIST) return fail(Code::invalid, "{}: is there already", path.string());
  if (number != 0) return system_error(path, "renaming", number);
  return sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

Status FakeFiles::ask(std::string_view operation, const fs::path& path) {
  if (!fault) return {};
  return fault(operation, path);
}

Result<std::string> FakeFiles::read(const fs::path& path, std::size_t max_bytes) {
  FURLONG_CHECK(ask("read", path));
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(normal(path));
  if (found == files_.end())
    return fail(Code::unavailable, "{}: opening: No such file or directory", path.string());
  if (found->second.size() > max_bytes)
    return fail(Code::invalid, "{}: is larger than the {} bytes allowed", path.string(), max_bytes);
  return found->second;
}

Status FakeFiles::write_atomic(const fs::path& path, std::string_view bytes) {
  FURLONG_CHECK(ask("write", path));
  FURLONG_CHECK(ask("sync", path));
  FURLONG_CHECK(ask("rename", path));
  {
    const std::scoped_lock lock(mutex_);
    files_[normal(path)] = std::string(bytes);
  }
  return ask("sync", path.parent_path());
}

bool FakeFiles::exists(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  const std::string name = normal(path);
  if (files_.contains(name)) return true;
  const auto inside = files_.lower_bound(name + "/");
  return inside != files_.end() && inside->first.starts_with(name + "/");
}

Result<std::vector<std::string>> FakeFiles::list(const fs::path& folder) {
  FURLONG_CHECK(ask("list", folder));
  const std::scoped_lock lock(mutex_);
  std::string prefix = normal(folder);
  prefix = prefix == "." ? "" : prefix.ends_with('/') ? prefix : prefix + "/";
  std::vector<std::string> names;
  for (auto file = files_.lower_bound(prefix); file != files_.end() && file->first.starts_with(prefix);
       ++file) {
    const std::string_view rest = std::string_view(file->first).substr(prefix.size());
    const std::size_t slash = rest.find('/');
    names.emplace_back(rest.substr(0, slash == std::string_view::npos ? slash : slash + 1));
  }
  if (names.empty())
    return fail(Code::unavailable, "{}: listing: No such file or directory", folder.string());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Status FakeFiles::remove(const fs::path& path) {
  FURLONG_CHECK(ask("remove", path));
  const std::scoped_lock lock(mutex_);
  const std::string name = normal(path);
  std::erase_if(files_,
                [&](const auto& file) { return file.first == name || file.first.starts_with(name + "/"); });
  return {};
}

namespace {

constexpr std::string_view kOwnPrefix = "furlong-";
constexpr double kAbandonedAfter_s = 24 * 3600;

// A temporary folder is locked as long as its program lives: so one whose program was killed is known from
// one in use, also between containers, whose process numbers mean nothing to each other. Leaked on purpose:
// folders may go at the very end.
struct HeldFolders {
  std::mutex mutex;
  std::map<std::string, int> descriptors;
};
HeldFolders& held_folders() {
  static HeldFolders* const the = new HeldFolders;
  return *the;
}

// Where the file system knows no locks, the folder is merely never taken for abandoned.
void hold_folder(const fs::path& path) {
  const int descriptor = open_retrying(path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return;
  static_cast<void>(!::flock(descriptor, LOCK_EX | LOCK_NB));
  const std::scoped_lock lock(held_folders().mutex);
  held_folders().descriptors[path.string()] = descriptor;
}

void let_folder_go(const fs::path& path) {
  const std::scoped_lock lock(held_folders().mutex);
  const auto found = held_folders().descriptors.find(path.string());
  if (found == held_folders().descriptors.end()) return;
  ::close(found->second);
  held_folders().descriptors.erase(found);
}

bool is_own_name(std::string_view name) {
  constexpr std::size_t kSuffix = 12;
  if (!name.starts_with(kOwnPrefix) || name.size() <= kOwnPrefix.size() + kSuffix) return false;
  const std::string_view suffix = name.substr(name.size() - kSuffix);
  return name[name.size() - kSuffix - 1] == '-' &&
         suffix.find_first_not_of("0123456789abcdef") == suffix.npos;
}

bool is_abandoned(const fs::path& path, double older_than_s) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) return false;
  // The age also covers the moment between the making of a folder and its lock.
  const double now_s = static_cast<double>(system_clock().wall_us()) * 1e-6;
  if (now_s - static_cast<double>(info.st_mtim.tv_sec) < older_than_s) return false;
  Descriptor descriptor(open_retrying(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return descriptor.get() >= 0 && ::flock(descriptor.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

namespace internal {

std::size_t remove_abandoned_folders(const fs::path& parent, double older_than_s) {
  std::size_t removed = 0;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (!is_own_name(entry->path().filename().string()) || !is_abandoned(entry->path(), older_than_s))
      continue;
    std::error_code ignored;  // what cannot be removed is the next program's to try
    fs::remove_all(entry->path(), ignored);
    if (!ignored) ++removed;
  }
  return removed;
}

bool remove_folder_stubbornly(const fs::path& folder) {
  constexpr int kAttempts = 100;
  constexpr std::int64_t kPause_ns = 5'000'000;
  for (int attempt = 1;; ++attempt) {
    std::error_code error;
    fs::remove_all(folder, error);
    // What came in between the listing and the removing makes the folder "not empty"; all else stays so.
    if (!error || error.value() == ENOENT) return true;
    if ((error.value() != ENOTEMPTY && error.value() != EEXIST) || attempt == kAttempts) return false;
    system_clock().sleep_ns(kPause_ns);
  }
}

}  // namespace internal

TemporaryFolder::TemporaryFolder(fs::path path) : path_(std::move(path)) {}

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error)
    return fail(Code::internal, "there is no temporary folder ({}): set TMPDIR to one", error.message());
  static std::once_flag swept;
  std::call_once(swept, [&] { internal::remove_abandoned_folders(parent, kAbandonedAfter_s); });
  for (int attempt = 0; attempt < 100; ++attempt) {
    const fs::path path = parent / fmt::format("{}-{}", prefix, unique_suffix());
    register_for_cleanup(path);  // first, so that no signal can fall between making and registering
    if (::mkdir(path.c_str(), 0700) == 0) {
      hold_folder(path);
      return TemporaryFolder(path);
    }
    const int number = errno;
    unregister_from_cleanup(path);
    if (number != EEXIST)
      return fail(code_of(number) == Code::exhausted ? Code::exhausted : Code::internal,
                  "{}: making a temporary folder: {}", path.string(),
                  std::generic_category().message(number));
  }
  return fail(Code::internal, "{}: no free name for a temporary folder", parent.string());
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  static_cast<void>(internal::remove_folder_stubbornly(path_));  // what stays is the system's to clean
  let_folder_go(path_);
  unregister_from_cleanup(path_);
}
TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, fs::path())) {}
TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

Result<FileLock> FileLock::acquire(const fs::path& path, double timeout_s) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) return system_error(path.parent_path(), "making the folder", error.value());
  FileLock lock(open_retrying(path, O_RDWR | O_CREAT, 0666));
  if (lock.descriptor_ < 0) return system_error(path, "opening the lock", errno);
  const std::int64_t start_ns = system_clock().now_ns();
  for (;;) {
    if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) return system_error(path, "locking", errno);
    if (static_cast<double>(system_clock().now_ns() - start_ns) * 1e-9 >= timeout_s)
      return fail(Code::timeout, "{}: locked by another process for {} s", path.string(), timeout_s);
    system_clock().sleep_ns(10'000'000);
  }
}
FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);  // also gives the lock back
}
FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

}  // namespace furlong
