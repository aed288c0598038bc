#include "furlong/base/os/guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <system_error>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/internal/spawn.h"
#include "furlong/base/os/trap.h"

namespace furlong {
namespace {

constexpr double kLook_s = 0.1;       // between two looks at what is in hand
constexpr double kAfterSignal_s = 2;  // for what is in hand once the work was asked to end

/// What both processes see. The work writes, the guard reads: `turn` is odd while it writes.
struct Shared {
  std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> kind{0};
  std::atomic<std::uint32_t> milestone{0};
  std::atomic<double> limit_s{0};
  std::atomic<bool> finished{false};
  std::atomic<int> code{0};
  char name[4096] = {};  // read only after the work's end
};
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

class SharedHand : public Hand {
 public:
  explicit SharedHand(Shared& shared) : shared_(shared) {}
  void take(std::uint32_t kind, std::string_view name, double limit_s) noexcept override {
    ++shared_.turn;
    const std::size_t size = std::min(name.size(), sizeof(shared_.name) - 1);
    std::memcpy(shared_.name, name.data(), size);
    shared_.name[size] = 0;
    shared_.limit_s = limit_s;
    shared_.kind = kind;
    ++shared_.turn;
  }
  void drop() noexcept override {
    ++shared_.turn;
    shared_.kind = 0;
    ++shared_.turn;
  }
  void reach(std::uint32_t milestone) noexcept override { shared_.milestone = milestone; }

 private:
  Shared& shared_;
};

/// The page that both see, while it lives.
class SharedPage {
 public:
  static Result<SharedPage> make() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return fail(Code::exhausted, "memory shared with guarded work: {}",
                  std::generic_category().message(errno));
    return SharedPage(new (memory) Shared);
  }
  ~SharedPage() {
    if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  }
  SharedPage(SharedPage&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  SharedPage& operator=(SharedPage&&) = delete;
  Shared& operator*() const { return *shared_; }

 private:
  explicit SharedPage(Shared* shared) : shared_(shared) {}
  Shared* shared_;
};

/// Holds signals back while it lives, so that the guard can wait for them.
class HeldSignals {
 public:
  HeldSignals() {
    ::signal(SIGCHLD,
             SIG_DFL);  // ignored (as inherited from some launchers) the work's end would not be told
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGTSTP, SIGCHLD}) sigaddset(&set_, signal);
    struct sigaction current{};
    const bool ignored = sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
    if (!ignored) sigaddset(&set_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() { give_back(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  void give_back() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  /// The next one, or 0 after kLook_s.
  int wait() const {
    const timespec look{0, static_cast<long>(kLook_s * 1e9)};
    const int signal = sigtimedwait(&set_, nullptr, &look);
    return std::max(signal, 0);
  }

 private:
  sigset_t set_{}, before_{};
};

[[noreturn]] void be_the_work(const std::function<int(Hand&)>& work, Shared& shared, pid_t guard,
                              const HeldSignals& signals, const std::optional<TemporaryFolder>& folder) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(1);
  setpgid(0, 0);
  // Not in the terminal's foreground group any more, yet what it prints is to be seen under `stty tostop`
  // too.
  ::signal(SIGTTOU, SIG_IGN);
  signals.give_back();
  if (folder) setenv("TMPDIR", folder->path().c_str(), 1);
  SharedHand hand(shared);
  shared.code = work(hand);
  shared.finished = true;
  // Neither destructors of statics nor exit handlers: foreign libraries have been here.
  _exit(shared.code);
}

/// The guard's side of one piece of work.
class Guard {
 public:
  Guard(pid_t work, const Shared& shared, const HeldSignals& signals)
      : work_(work), shared_(shared), signals_(signals) {}

  GuardEnd watch() {
    int status = 0;
    for (;;) {
      const int signal = signals_.wait();
      const pid_t done = waitpid(work_, &status, WNOHANG);
      if (done == work_) break;
      if (done < 0 && errno != EINTR) {  // someone else waited for it
        status = 0;
        break;
      }
      if (signal == SIGTSTP) {
        sleep_together();
      } else if (signal != 0 && signal != SIGCHLD) {
        end_.interrupted = signal;
        kill(work_, signal);
      }
      look();
    }
    kill(-work_, SIGKILL);  // whatever it left in its group
    end_.finished = shared_.finished;
    end_.code = shared_.code;
    end_.kind = shared_.kind;
    end_.name = std::string(shared_.name, strnlen(shared_.name, sizeof(shared_.name)));
    end_.milestone = shared_.milestone;
    if (WIFSIGNALED(status)) end_.end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end_.end.exit_code = WEXITSTATUS(status);
    return end_;
  }

 private:
  /// The signal's own default for the guard: where no shell could wake it again, the system drops it.
  void sleep_together() const {
    kill(-work_, SIGSTOP);
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    kill(-work_, SIGCONT);
  }

  /// Counts the guard's own waking time: a suspended machine, or a stopped guard, makes nothing hang.
  void look() {
    const double now_ms = system_clock().now_ms();
    const double passed_s = last_ms_ ? std::min(1e-3 * (now_ms - *last_ms_), 2 * kLook_s) : 0;
    last_ms_ = now_ms;
    const std::uint32_t turn = shared_.turn;
    const bool held = turn % 2 == 0 && shared_.kind != 0 && turn == turn_;
    held_s_ = held ? held_s_ + passed_s : 0;
    after_signal_s_ = held && end_.interrupted != 0 ? after_signal_s_ + passed_s : 0;
    turn_ = turn;
    if (!held || end_.hung) return;
    const double limit_s = shared_.limit_s;
    if (held_s_ <= limit_s && after_signal_s_ <= kAfterSignal_s) return;
    end_.hung = held_s_ > limit_s;
    end_.limit_s = limit_s;
    kill(-work_, SIGKILL);
  }

  pid_t work_;
  const Shared& shared_;
  const HeldSignals& signals_;
  GuardEnd end_;
  std::uint32_t turn_ = 0;
  double held_s_ = 0, after_signal_s_ = 0;
  std::optional<double> last_ms_;
};

}  // namespace

std::string GuardEnd::text() const { return hung ? fmt::format("ran past {:.3g} s", limit_s) : end.text(); }

bool GuardEnd::by_itself() const {
  if (finished || interrupted != 0) return false;
  if (hung) return true;
  // The work asked to end by a signal of its own, a second one: it cleans up and exits so.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (end.signal == 0 && end.exit_code == 128 + signal) return false;
  return end.signal == 0 || is_trap(end.signal);
}

Result<GuardEnd> run_guarded(const std::function<int(Hand&)>& work) {
  FURLONG_TRY(const SharedPage page, SharedPage::make());
  const HeldSignals signals;  // before the folder: a signal in between would leave it
  std::optional<TemporaryFolder> folder;
  if (auto made = TemporaryFolder::make("furlong-guarded"))
    folder = std::move(*made);  // else: as without a guard
  const pid_t guard = getpid();
  const pid_t child = fork();
  if (child < 0)
    return fail(internal::spawn_code(errno), "starting a process: {}",
                std::generic_category().message(errno));
  if (child == 0) be_the_work(work, *page, guard, signals, folder);
  setpgid(child, child);  // here too: whichever comes first
  return Guard(child, *page, signals).watch();
}

}  // namespace furlong
