#include "furlong/record/internal/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "furlong/base/os/clock.h"

namespace furlong::record::internal {
namespace {

Error system_error(std::string_view doing, int error) {
  const Code code = error == ENOSPC || error == EDQUOT || error == EFBIG  ? Code::exhausted
                    : error == EACCES || error == EPERM || error == EROFS ? Code::denied
                                                                          : Code::internal;
  return fail(code, "{}: {}", doing, std::strerror(error));
}

class SystemAppendFile final : public AppendFile {
 public:
  SystemAppendFile(int descriptor, bool regular, std::filesystem::path folder)
      : descriptor_(descriptor), regular_(regular), folder_(std::move(folder)) {}
  ~SystemAppendFile() override { close(descriptor_); }  // gives the lock back too
  SystemAppendFile(const SystemAppendFile&) = delete;
  SystemAppendFile& operator=(const SystemAppendFile&) = delete;

  Result<std::uint64_t> size() override {
    struct stat status{};
    if (fstat(descriptor_, &status) != 0) return system_error("asking for its size", errno);
    return regular_ ? static_cast<std::uint64_t>(status.st_size) : 0;
  }

  Result<bool> torn() override {
    FURLONG_TRY(const std::uint64_t bytes, size());
    if (bytes == 0) return false;
    char last = '\n';
    if (pread(descriptor_, &last, 1, static_cast<off_t>(bytes - 1)) < 0)
      return system_error("reading its end", errno);
    return last != '\n';
  }

  Result<std::size_t> write(std::string_view bytes) override {
    for (;;) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written >= 0) return static_cast<std::size_t>(written);
      if (errno != EINTR) return system_error("writing", errno);
    }
  }

  Status truncate(std::uint64_t size) override {
    if (regular_ && ftruncate(descriptor_, static_cast<off_t>(size)) != 0)
      return system_error("cutting it back", errno);
    return {};
  }

  Status sync() override {
    if (!regular_) return {};
    if (fsync(descriptor_) != 0) return system_error("syncing", errno);
    // The file may be new, and then its name is not on the disk yet.
    const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return system_error("opening its folder", errno);
    const int failed = fsync(folder) == 0 ? 0 : errno;
    close(folder);
    if (failed != 0 && failed != EINVAL) return system_error("syncing its folder", failed);
    return {};
  }

 private:
  int descriptor_;
  bool regular_;
  std::filesystem::path folder_;
};

Status lock(int descriptor, double timeout_s) {
  const std::int64_t until_ns = system_clock().now_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return system_error("locking", errno);
    if (system_clock().now_ns() >= until_ns)
      return fail(Code::timeout, "another process has held its lock for {} s", timeout_s);
    system_clock().sleep_ns(2'000'000);
  }
  return {};
}

Status write_all(AppendFile& file, std::string_view bytes) {
  while (!bytes.empty()) {
    FURLONG_TRY(const std::size_t written, file.write(bytes));
    if (written == 0) return fail(Code::exhausted, "writing: no byte was taken");
    bytes.remove_prefix(written);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AppendFile>> open_append_file(const std::filesystem::path& path, double timeout_s) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code made;
  std::filesystem::create_directories(folder, made);  // when it fails, open says why
  const int descriptor = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return system_error("opening", errno);
  struct stat status{};
  const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  auto file = std::make_unique<SystemAppendFile>(descriptor, regular, folder);
  if (regular) FURLONG_CHECK(lock(descriptor, timeout_s));
  return std::unique_ptr<AppendFile>(std::move(file));
}

Status append_line(AppendFile& file, std::string_view line) {
  FURLONG_TRY(const std::uint64_t before, file.size());
  FURLONG_TRY(const bool torn, file.torn());
  std::string bytes = torn ? "\n" : "";
  bytes.append(line) += '\n';
  Status status = write_all(file, bytes);
  if (status) status = file.sync();
  if (status) return {};
  Error error = status.error();
  if (const Status back = file.truncate(before); !back)
    return fail(error.code(), "{}; and {}: its last line may be torn", error.text(), back.error().text());
  return error;
}

}  // namespace furlong::record::internal
