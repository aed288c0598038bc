#include "furlong/base/os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <system_error>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/internal/group_guard.h"
#include "furlong/base/os/internal/pipe.h"
#include "furlong/base/os/internal/spawn.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/memory.h"

namespace furlong {
namespace {

using internal::make_pipe;
using internal::Pipe;
using internal::PipePair;

constexpr std::size_t output_kept = 16u << 20;
constexpr std::size_t error_kept = 1u << 20;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t deadline_after(double timeout_s) {
  if (!(timeout_s < 1e9)) return never;
  return system_clock().now_ns() + static_cast<std::int64_t>(std::max(timeout_s, 0.0) * 1e9);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

void set_nonblocking(const Pipe& pipe) {
  fcntl(pipe.get(), F_SETFL, fcntl(pipe.get(), F_GETFL) | O_NONBLOCK);
}

// write() to a pipe whose reader may be gone, without the SIGPIPE that would end this process. The
// signal is held back for this thread only: whether the program handles SIGPIPE is not ours to choose.
ssize_t write_without_signal(int descriptor, const char* data, std::size_t size) {
  sigset_t broken;
  sigset_t before;
  sigset_t waiting;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  sigemptyset(&waiting);
  sigpending(&waiting);
  const bool was_waiting = sigismember(&waiting, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &broken, &before);
  const ssize_t wrote = write(descriptor, data, size);
  const int number = errno;
  if (wrote < 0 && number == EPIPE && !was_waiting) {
    const timespec at_once{};
    while (sigtimedwait(&broken, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return wrote;
}

class SystemChild : public Child {
 public:
  SystemChild(int pid, Pipe input, Pipe output, Pipe error, Pipe wake, const ProcessRequest& request)
      : pid_(pid),
        grace_s_(request.grace_s),
        own_peak_bytes_(peak_resident_bytes()),
        input_(std::move(input)),
        output_(std::move(output)),
        error_(std::move(error)),
        wake_(std::move(wake)),
        exit_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
        to_send_(request.input),
        closes_after_sending_(!to_send_.empty()) {
    register_child_group(pid_);
    set_nonblocking(input_);
    set_nonblocking(output_);
    set_nonblocking(error_);
    sample_memory();
    if (!request.guarded) return;
    if (auto guard = internal::GroupGuard::start(pid_)) guard_ = std::move(*guard);
  }
  ~SystemChild() override {
    if (!ended_) SystemChild::kill();
  }
  SystemChild(const SystemChild&) = delete;
  SystemChild& operator=(const SystemChild&) = delete;

  Result<std::optional<std::string>> read_line(double timeout_s) override {
    const std::int64_t deadline_ns = deadline_after(timeout_s);
    for (bool last_look = false;;) {
      if (auto line = take_line()) return line;
      if (lines_size() >= output_kept)
        return fail(Code::exhausted, "process {} printed a line of more than {} bytes", pid_, output_kept);
      if (!output_.open()) return rest_of_output();
      if (last_look) return fail(Code::timeout, "process {} printed no line for {} s", pid_, timeout_s);
      last_look = system_clock().now_ns() >= deadline_ns;
      turn(deadline_ns);
    }
  }

  Status write(std::string_view bytes) override {
    if (closes_after_sending_)
      return fail(Code::invalid, "process {} was started with its whole input: nothing can be added", pid_);
    if (!input_.open()) return closed_input();
    to_send_ = std::string(bytes);
    sent_ = 0;
    while (sent_ < to_send_.size()) {
      if (!input_.open()) return closed_input();
      if (lines_size() >= output_kept)
        return fail(Code::exhausted, "process {} printed {} bytes that nobody read, and reads no input", pid_,
                    output_kept);
      turn(never);
    }
    return {};  // also when the child, having got all of it, has ended since
  }

  void close_input() override {
    if (!closes_after_sending_) input_.close();
  }

  ProcessEnd kill() override {
    if (!ended_) ::kill(-pid_, SIGKILL);
    return wait_until(never);
  }

  ProcessEnd wait(double timeout_s) override {
    close_input();
    const ProcessEnd end = wait_until(deadline_after(timeout_s));
    if (ended_) return end;
    limit_s_ = timeout_s;
    timed_out_ = true;
    return kill();
  }

  void interrupt() override {
    const std::uint64_t one = 1;
    // A full counter (which 2^64 - 1 calls would take) wakes as well.
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  }

  int pid() const override { return pid_; }

 private:
  Error closed_input() const {
    return fail(Code::unavailable, "process {} has closed its standard input", pid_);
  }

  std::size_t lines_size() const { return lines_.size() - taken_; }

  std::optional<std::string> take_line() {
    const std::size_t end = lines_.find('\n', std::max(searched_, taken_));
    if (end == std::string::npos) {
      searched_ = lines_.size();
      return std::nullopt;
    }
    std::string line = lines_.substr(taken_, end - taken_);
    taken_ = searched_ = end + 1;
    if (taken_ > lines_.size() / 2) {  // moves each byte once on average
      lines_.erase(0, taken_);
      taken_ = searched_ = 0;
    }
    return line;
  }

  // A last line without a newline, then the end.
  std::optional<std::string> rest_of_output() {
    if (lines_size() == 0) return std::nullopt;
    std::string rest = lines_.substr(taken_);
    lines_.clear();
    taken_ = searched_ = 0;
    return rest;
  }

  // Ended or past the deadline; in the latter case the value means nothing.
  ProcessEnd wait_until(std::int64_t deadline_ns) {
    while (!ended_) {
      drops_output_ = true;
      turn(deadline_ns);
      if (system_clock().now_ns() >= deadline_ns) break;
    }
    if (!ended_) return {};
    if (!output_given_) end_.standard_output = lines_.substr(taken_);
    output_given_ = true;
    lines_.clear();
    taken_ = searched_ = 0;
    return end_;
  }

  // Waits until something happens, or the deadline or the time of a memory sample has come.
  void turn(std::int64_t deadline_ns) {
    if (ended_) return;
    std::array<pollfd, 5> polled{};
    const bool sending = input_.open() && sent_ < to_send_.size();
    const bool reading = output_.open() && (drops_output_ || lines_size() < output_kept);
    // poll ignores entries with a negative descriptor.
    polled[0] = {sending ? input_.get() : -1, POLLOUT, 0};
    polled[1] = {reading ? output_.get() : -1, POLLIN, 0};
    polled[2] = {error_.get(), POLLIN, 0};
    polled[3] = {exit_.get(), POLLIN, 0};
    polled[4] = {interrupted_ ? -1 : wake_.get(), POLLIN, 0};
    if (poll(polled.data(), polled.size(), poll_ms(deadline_ns)) < 0 && errno != EINTR) {
      // Only a lack of memory is left as a reason: the child cannot be watched any more.
      ::kill(-pid_, SIGKILL);
    }
    sample_memory();
    if (polled[4].revents != 0) {
      interrupted_ = true;
      kill_at_ns_ = deadline_after(grace_s_);
      if (grace_s_ > 0) ::kill(-pid_, SIGTERM);
    }
    if (interrupted_ && system_clock().now_ns() >= kill_at_ns_) {
      kill_at_ns_ = never;
      ::kill(-pid_, SIGKILL);
    }
    if (polled[0].revents != 0) send();
    if (polled[1].revents != 0) receive_output();
    if (polled[2].revents != 0) receive_error();
    if (has_exited()) finish();
  }

  int poll_ms(std::int64_t deadline_ns) const {
    const std::int64_t now_ns = system_clock().now_ns();
    std::int64_t wait_ns =
        std::max<std::int64_t>(0, std::min({deadline_ns, next_sample_ns_, kill_at_ns_}) - now_ns);
    if (!exit_.open()) wait_ns = std::min<std::int64_t>(wait_ns, 5'000'000);  // no pidfd: look again soon
    return static_cast<int>((wait_ns + 999'999) / 1'000'000);
  }

  // The system counts this process's own memory at the time of the fork as the child's, so ru_maxrss
  // tells nothing about a child that is smaller than we are. The child's own high-water mark is
  // sampled for that case, often at first and then ever more seldom.
  void sample_memory() {
    const std::int64_t now_ns = system_clock().now_ns();
    if (now_ns < next_sample_ns_) return;
    sampled_peak_bytes_ = std::max(sampled_peak_bytes_, peak_resident_bytes(pid_));
    sample_every_ns_ = std::min<std::int64_t>(sample_every_ns_ * 2, 200'000'000);
    next_sample_ns_ = now_ns + sample_every_ns_;
  }

  void send() {
    const ssize_t wrote =
        write_without_signal(input_.get(), to_send_.data() + sent_, to_send_.size() - sent_);
    if (wrote >= 0)
      sent_ += static_cast<std::size_t>(wrote);
    else if (errno != EAGAIN && errno != EINTR)
      input_.close();
    if (closes_after_sending_ && sent_ == to_send_.size()) input_.close();
  }

  // Both close their pipe at its end.
  void receive_output() {
    std::array<char, 65536> chunk;
    const ssize_t got = read(output_.get(), chunk.data(), chunk.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      output_.close();
      return;
    }
    const auto size = static_cast<std::size_t>(got);
    lines_.append(chunk.data(),
                  drops_output_ ? std::min(size, output_kept - std::min(output_kept, lines_size())) : size);
  }
  void receive_error() {
    std::array<char, 65536> chunk;
    const ssize_t got = read(error_.get(), chunk.data(), chunk.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      error_.close();
      return;
    }
    std::string& kept = end_.standard_error;
    kept.append(chunk.data(), static_cast<std::size_t>(got));
    if (kept.size() > 2 * error_kept) kept.erase(0, kept.size() - error_kept);
  }

  // Looks without reaping: as long as the leader is not reaped, its number cannot become another
  // group's, and the group can be killed safely.
  bool has_exited() const {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0)
      return info.si_pid == pid_;
    return errno == ECHILD;  // reaped behind our back: the program ignores SIGCHLD or waits for everyone
  }

  void finish() {
    ::kill(-pid_, SIGKILL);
    drain();
    input_.close();
    guard_.end();
    unregister_child_group(pid_);
    int status = 0;
    rusage usage{};
    pid_t reaped = 0;
    do reaped = wait4(pid_, &status, 0, &usage);
    while (reaped < 0 && errno == EINTR);
    if (reaped == pid_ && WIFSIGNALED(status))
      end_.signal = WTERMSIG(status);
    else if (reaped == pid_)
      end_.exit_code = WEXITSTATUS(status);
    end_.timed_out = timed_out_;
    end_.limit_s = limit_s_;
    end_.stopped = interrupted_;
    const auto counted_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    // The counters are kept per processor and may be a little off.
    const std::uint64_t inherited_bytes = own_peak_bytes_ + own_peak_bytes_ / 64 + (2u << 20);
    end_.peak_bytes = counted_bytes > inherited_bytes ? counted_bytes : sampled_peak_bytes_;
    end_.user_s = seconds_of(usage.ru_utime);
    end_.system_s = seconds_of(usage.ru_stime);
    if (end_.standard_error.size() > error_kept)
      end_.standard_error.erase(0, end_.standard_error.size() - error_kept);
    ended_ = true;
  }

  // What the group had written before it ended. Its pipes close as its processes die; one that has
  // left the group may hold them for ever, so there is a limit.
  void drain() {
    const std::int64_t give_up_ns = system_clock().now_ns() + 200'000'000;
    while (output_.open() || error_.open()) {
      std::array<pollfd, 2> polled = {{{output_.get(), POLLIN, 0}, {error_.get(), POLLIN, 0}}};
      const std::int64_t left_ms = (give_up_ns - system_clock().now_ns()) / 1'000'000;
      const int ready =
          poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(0, left_ms)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) break;
      if (polled[0].revents != 0) receive_output();
      if (polled[1].revents != 0) receive_error();
    }
    output_.close();
    error_.close();
  }

  const int pid_;
  const double grace_s_;
  const std::uint64_t own_peak_bytes_;
  internal::GroupGuard guard_;
  Pipe input_;
  Pipe output_;
  Pipe error_;
  Pipe wake_;
  Pipe exit_;  // pidfd: readable when the leader has ended; not open on kernels without
  std::string to_send_;
  std::size_t sent_ = 0;
  bool closes_after_sending_;
  std::string lines_;      // standard output; taken_ bytes of it have been handed out,
  std::size_t taken_ = 0;  // and up to searched_ there is no newline
  std::size_t searched_ = 0;
  bool drops_output_ = false;  // nobody reads lines any more: past output_kept output is dropped
  bool output_given_ = false;
  bool interrupted_ = false;
  std::int64_t kill_at_ns_ = never;  // when an interrupted one has had its grace
  bool timed_out_ = false;
  double limit_s_ = 0;
  std::uint64_t sampled_peak_bytes_ = 0;
  std::int64_t sample_every_ns_ = 1'000'000;
  std::int64_t next_sample_ns_ = 0;
  bool ended_ = false;
  ProcessEnd end_;
};

std::string variable(const ProcessRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.environment)
    if (key == name) return value;
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::string() : std::string(value);
}

bool can_run(const std::filesystem::path& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_program(const ProcessRequest& request) {
  const std::string& name = request.argv.front();
  std::error_code error;
  if (name.find('/') != std::string::npos) {
    const std::filesystem::path path = std::filesystem::absolute(name, error);
    if (error) return fail(Code::internal, "{}: {}", name, error.message());
    if (!std::filesystem::exists(path, error))
      return fail(Code::unavailable, "{}: there is no such program", name);
    return path.string();
  }
  std::string path = variable(request, "PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    // An empty entry means the current folder by tradition; running what lies there by chance is refused.
    const std::filesystem::path folder = path.substr(start, end - start);
    if (!name.empty() && !folder.empty() && can_run(folder / name))
      return std::filesystem::absolute(folder / name, error).string();
    start = end + 1;
  }
  return fail(Code::unavailable, "program '{}' is not in PATH ({})", name, path);
}

std::vector<std::string> whole_environment(const ProcessRequest& request) {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(request.environment.begin(), request.environment.end(),
                                      [&](const auto& added) { return added.first == name; });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : request.environment) all.push_back(name + "=" + value);
  return all;
}

class SystemProcesses : public Processes {
 public:
  Result<std::unique_ptr<Child>> start(const ProcessRequest& request) override {
    if (request.argv.empty()) return fail(Code::invalid, "a process needs at least its program's name");
    internal::SpawnPlan plan;
    FURLONG_TRY(plan.program, find_program(request));
    plan.arguments = request.argv;
    plan.environment = whole_environment(request);
    plan.folder = request.folder.string();
    plan.address_space_bytes = request.address_space_bytes;
    plan.cpu_seconds = request.cpu_seconds;
    if (!request.control_group.empty()) plan.group_file = (request.control_group / "cgroup.procs").string();
    FURLONG_TRY(PipePair input, make_pipe());
    FURLONG_TRY(PipePair output, make_pipe());
    FURLONG_TRY(PipePair error, make_pipe());
    Pipe wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake.open())
      return fail(internal::spawn_code(errno), "{}: making an event: {}", plan.program,
                  std::generic_category().message(errno));
    plan.input = input.reader.get();
    plan.output = output.writer.get();
    plan.error = error.writer.get();
    FURLONG_TRY(const int pid, internal::spawn(plan));
    return std::make_unique<SystemChild>(pid, std::move(input.writer), std::move(output.reader),
                                         std::move(error.reader), std::move(wake), request);
  }
};

}  // namespace

std::string ProcessEnd::text() const {
  if (timed_out) return fmt::format("ran past {:.1f} s and was killed", limit_s);
  if (stopped) return "was stopped";
  if (signal != 0) {
    const char* name = sigdescr_np(signal);
    return name == nullptr ? fmt::format("killed by signal {}", signal)
                           : fmt::format("killed by signal {} ({})", signal, name);
  }
  return fmt::format("exit status {}", exit_code);
}

Result<ProcessEnd> Processes::run(const ProcessRequest& request, double timeout_s, std::stop_token stop) {
  if (stop.stop_requested()) {
    ProcessEnd end;
    end.stopped = true;
    return end;
  }
  FURLONG_TRY(const std::unique_ptr<Child> child, start(request));
  const std::stop_callback on_stop(stop, [&] { child->interrupt(); });
  return child->wait(timeout_s);
}

Processes& system_processes() {
  static SystemProcesses processes;
  return processes;
}

Result<std::filesystem::path> own_executable() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(Code::unavailable, "/proc/self/exe: {}", error.message());
  return path;
}

}  // namespace furlong
