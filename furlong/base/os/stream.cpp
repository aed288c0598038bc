#include "furlong/base/os/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace furlong {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece = 256u << 10;
constexpr int look_ms = 100;  // at the stop token, while a pipe says nothing

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

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

}  // namespace

// ---- reading

struct LineReader::State {
  fs::path path;
  int descriptor = -1;
  bool own = false;
  bool regular = false;
  std::uint64_t size = 0, read = 0;
  std::size_t most = 0;
  std::string buffer;
  std::size_t at = 0;       // of the next line in the buffer
  std::size_t scanned = 0;  // no newline before here
  bool ended = false;
  int number = 0;

  ~State() {
    if (own && descriptor >= 0) ::close(descriptor);
  }
  Result<bool> fill(const std::stop_token& stop);
  Result<bool> skip_line(const std::stop_token& stop);
};

/// More bytes behind the buffer's; false at the end, or when it is to stop.
Result<bool> LineReader::State::fill(const std::stop_token& stop) {
  if (ended) return false;
  buffer.erase(0, at);
  scanned -= at;
  at = 0;
  for (;;) {
    if (stop.stop_requested()) return false;
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (!regular && ::poll(&ready, 1, look_ms) == 0) continue;
    const std::size_t before = buffer.size();
    buffer.resize(before + piece);
    const ssize_t got = ::read(descriptor, buffer.data() + before, piece);
    const int number_of_error = errno;
    buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (number_of_error == EINTR || number_of_error == EAGAIN)) continue;
    if (got < 0) return system_error(path, "reading", number_of_error);
    ended = got == 0;
    read += static_cast<std::size_t>(got);
    return !ended;
  }
}

/// Leaves `at` behind the next newline, keeping nothing of what is before it.
Result<bool> LineReader::State::skip_line(const std::stop_token& stop) {
  for (;;) {
    const std::size_t end = buffer.find('\n', scanned);
    if (end != std::string::npos) {
      at = scanned = end + 1;
      return true;
    }
    at = scanned = buffer.size();
    FURLONG_TRY(const bool more, fill(stop));
    if (!more) return false;
  }
}

LineReader::LineReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

Result<LineReader> LineReader::open(const fs::path& path, std::size_t most_line_bytes) {
  auto state = std::make_unique<State>();
  state->path = path == "-" ? fs::path("standard input") : path;
  state->most = most_line_bytes;
  if (path == "-") {
    state->descriptor = STDIN_FILENO;
  } else {
    state->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    state->own = true;
    if (state->descriptor < 0) return system_error(path, "opening", errno);
  }
  struct stat info{};
  if (::fstat(state->descriptor, &info) != 0) return system_error(state->path, "opening", errno);
  if (S_ISDIR(info.st_mode)) return fail(Code::invalid, "{}: is a folder, not a file", state->path.string());
  state->regular = S_ISREG(info.st_mode);
  state->size = state->regular ? static_cast<std::uint64_t>(info.st_size) : 0;
  return LineReader(std::move(state));
}

Result<std::optional<LineReader::Line>> LineReader::next(const std::stop_token& stop) {
  State& state = *state_;
  for (;;) {
    if (stop.stop_requested()) return std::optional<Line>();
    const std::size_t end = state.buffer.find('\n', state.scanned);
    const std::size_t length = (end == std::string::npos ? state.buffer.size() : end) - state.at;
    if (length > state.most) {
      // Its beginning is copied out, since skipping the rest moves the buffer.
      const std::string begin = state.buffer.substr(state.at, 100);
      FURLONG_TRY(const bool ended_by_newline, state.skip_line(stop));
      static_cast<void>(ended_by_newline);
      state.buffer.insert(0, begin);
      state.at += begin.size();
      state.scanned += begin.size();
      return Line{std::string_view(state.buffer).substr(0, begin.size()), ++state.number, true};
    }
    if (end != std::string::npos) {
      const Line line{std::string_view(state.buffer).substr(state.at, length), ++state.number, false};
      state.at = state.scanned = end + 1;
      return line;
    }
    state.scanned = state.buffer.size();
    FURLONG_TRY(const bool more, state.fill(stop));
    if (more) continue;
    if (!state.ended || state.at == state.buffer.size()) return std::optional<Line>();
    const Line line{std::string_view(state.buffer).substr(state.at), ++state.number, false};
    state.at = state.scanned = state.buffer.size();
    return line;
  }
}

std::uint64_t LineReader::bytes_read() const { return state_->read - (state_->buffer.size() - state_->at); }
std::optional<std::uint64_t> LineReader::size() const {
  return state_->regular ? std::optional(state_->size) : std::nullopt;
}

// ---- writing

struct FileWriter::State {
  fs::path path, temporary;  // temporary empty: written to directly
  int descriptor = -1;
  std::string buffer;

  ~State() {
    if (descriptor >= 0) ::close(descriptor);
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
  Status flush() {
    if (const int number = write_all(descriptor, buffer); number != 0)
      return system_error(path, "writing", number);
    buffer.clear();
    return {};
  }
};

FileWriter::FileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileWriter::~FileWriter() = default;
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;

Result<FileWriter> FileWriter::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  struct stat info{};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode))
    return fail(Code::invalid, "{}: is a folder, not a file", path.string());
  if (there && !S_ISREG(info.st_mode)) {
    state->descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (state->descriptor < 0) return system_error(path, "opening", errno);
    return FileWriter(std::move(state));
  }
  std::error_code error;
  // A link stays, and what it leads to is replaced. What is not there yet is no link, and no error.
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    state->path = fs::weakly_canonical(path, error);
    if (error) return system_error(path, "following the link", error.value());
  }
  const fs::path folder = state->path.has_parent_path() ? state->path.parent_path() : fs::path(".");
  fs::create_directories(folder, error);
  if (error) return system_error(folder, "making the folder", error.value());
  // The name is this process' alone; the mode is what the umask gives, or that of the file that it replaces.
  static std::atomic<std::uint64_t> counter{0};
  state->temporary =
      folder / fmt::format(".{}.{}-{}.tmp", state->path.filename().string(), ::getpid(), counter++);
  state->descriptor =
      ::open(state->temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, there ? 0600 : 0666);
  if (state->descriptor < 0) {
    const int number = errno;
    state->temporary.clear();
    return system_error(path, "writing", number);
  }
  if (there && ::fchmod(state->descriptor, info.st_mode & 07777) != 0)
    return system_error(path, "writing", errno);
  return FileWriter(std::move(state));
}

Status FileWriter::write(std::string_view bytes) {
  state_->buffer += bytes;
  if (state_->buffer.size() < piece) return {};
  return state_->flush();
}

Status FileWriter::commit() {
  State& state = *state_;
  FURLONG_CHECK(state.flush());
  if (state.temporary.empty()) return {};
  if (::fsync(state.descriptor) != 0) return system_error(state.path, "writing", errno);
  const int closed = ::close(std::exchange(state.descriptor, -1));
  if (closed != 0 && errno != EINTR) return system_error(state.path, "writing", errno);
  if (::rename(state.temporary.c_str(), state.path.c_str()) != 0)
    return system_error(state.path, "writing", errno);
  state.temporary.clear();
  const fs::path folder = state.path.has_parent_path() ? state.path.parent_path() : fs::path(".");
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return system_error(folder, "opening the folder to sync it", errno);
  const bool synced = ::fsync(opened) == 0 || errno == EINVAL;
  const int number = errno;
  ::close(opened);
  return synced ? Status() : system_error(folder, "syncing the folder", number);
}

}  // namespace furlong
