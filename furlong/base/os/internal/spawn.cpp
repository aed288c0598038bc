#include "furlong/base/os/internal/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace furlong::internal {
namespace {

// Where the child failed, sent through a pipe that exec closes.
enum class Stage : int { folder, group, control_group, limits, descriptors, exec };
struct Failure {
  Stage stage;
  int number;
};

struct Prepared {
  const SpawnPlan* plan;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  pid_t parent;
  int failure_pipe;
};

[[noreturn]] void give_up(const Prepared& prepared, Stage stage) {
  const Failure failure{stage, errno};
  while (write(prepared.failure_pipe, &failure, sizeof failure) < 0 && errno == EINTR) {
  }
  _exit(127);
}

bool limit(decltype(RLIMIT_AS) what, rlim_t soft, rlim_t hard) {
  rlimit current{};
  if (getrlimit(what, &current) != 0) return false;
  const rlimit wanted{std::min(soft, current.rlim_max), std::min(hard, current.rlim_max)};
  return setrlimit(what, &wanted) == 0;
}

// Runs in the child, which still shares this process's memory: system calls only, no allocation, no
// locks, and nothing written but the stack.
[[noreturn, gnu::noinline]] void become(const Prepared& prepared) {
  const SpawnPlan& plan = *prepared.plan;
  if (plan.join_group != 0) {
    if (setpgid(0, plan.join_group) != 0) give_up(prepared, Stage::group);
  } else {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != prepared.parent) _exit(127);  // it ended before the line above took effect
  }
  // The thread that forks has the priority that it was made with. To raise one's own may be denied, and is
  // not needed to run.
  if (getpriority(PRIO_PROCESS, 0) != plan.priority) setpriority(PRIO_PROCESS, 0, plan.priority);
  // Default actions for all signals: exec keeps ignored ones, and a child that ignores SIGPIPE or
  // SIGINT because we do would surprise.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
  if (!plan.group_file.empty()) {
    const int group = open(plan.group_file.c_str(), O_WRONLY | O_CLOEXEC);
    if (group < 0 || write(group, "0", 1) != 1)
      give_up(prepared, Stage::control_group);  // 0: whoever writes it
    close(group);
  }
  if (!plan.folder.empty() && chdir(plan.folder.c_str()) != 0) give_up(prepared, Stage::folder);
  if (dup2(plan.input, 0) < 0 || dup2(plan.output, 1) < 0 || dup2(plan.error, 2) < 0)
    give_up(prepared, Stage::descriptors);
#ifdef SYS_close_range
  // Descriptors that some library opened without O_CLOEXEC stay out of the child. Older kernels
  // refuse the call; Furlong's own are all O_CLOEXEC.
  constexpr unsigned close_on_exec = 1u << 2;
  syscall(SYS_close_range, 3u, ~0u, close_on_exec);
#endif
  if (plan.address_space_bytes != 0 && !limit(RLIMIT_AS, plan.address_space_bytes, plan.address_space_bytes))
    give_up(prepared, Stage::limits);
  // Past the soft limit SIGXCPU, a second later SIGKILL for a program that ignores it.
  if (plan.cpu_seconds != 0 && !limit(RLIMIT_CPU, plan.cpu_seconds, plan.cpu_seconds + 1))
    give_up(prepared, Stage::limits);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(plan.program.c_str(), prepared.arguments.data(), prepared.environment.data());
  give_up(prepared, Stage::exec);
}

// vfork: no copy of the page tables of a process that may map a whole card, and this thread waits
// until the child has gone its own way. A function of its own, since locals that live across vfork
// are treacherous.
[[gnu::noinline]] pid_t fork_and_become(const Prepared& prepared) {
  const pid_t pid = vfork();
  if (pid == 0) become(prepared);
  return pid;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  // execve takes char* for historical reasons and changes nothing.
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

Error failed_in_child(const SpawnPlan& plan, const Failure& failure) {
  const std::string why = std::generic_category().message(failure.number);
  switch (failure.stage) {
    case Stage::folder:
      return fail(spawn_code(failure.number), "{}: cannot be the working folder: {}", plan.folder, why);
    case Stage::group:
      return fail(spawn_code(failure.number), "{}: joining the process group {}: {}", plan.program,
                  plan.join_group, why);
    case Stage::control_group:
      return fail(spawn_code(failure.number), "{}: joining the control group {}: {}", plan.program,
                  plan.group_file, why);
    case Stage::limits:
      return fail(Code::internal, "{}: setting its limits: {}", plan.program, why);
    case Stage::descriptors:
      return fail(Code::internal, "{}: joining its pipes: {}", plan.program, why);
    case Stage::exec:
      break;
  }
  return fail(spawn_code(failure.number), "{}: cannot be run: {}", plan.program, why);
}

Result<int> spawn_here(const SpawnPlan& plan, int& exec_error) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(spawn_code(errno), "{}: making a pipe: {}", plan.program,
                std::generic_category().message(errno));
  // Above 2, or the child's dup2 would overwrite it.
  const int failure_pipe = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  const int dup_error = errno;
  close(ends[1]);
  if (failure_pipe < 0) {
    close(ends[0]);
    return fail(spawn_code(dup_error), "{}: making a pipe: {}", plan.program,
                std::generic_category().message(dup_error));
  }
  const Prepared prepared{&plan, pointers(plan.arguments), pointers(plan.environment), getpid(),
                          failure_pipe};
  const pid_t pid = fork_and_become(prepared);
  const int fork_error = errno;
  close(failure_pipe);
  Failure failure{};
  ssize_t got = 0;
  if (pid > 0) do
      got = read(ends[0], &failure, sizeof failure);
    while (got < 0 && errno == EINTR);
  close(ends[0]);
  if (pid < 0)
    return fail(spawn_code(fork_error), "{}: starting a process: {}", plan.program,
                std::generic_category().message(fork_error));
  if (got == static_cast<ssize_t>(sizeof failure)) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (failure.stage == Stage::exec) exec_error = failure.number;
    return failed_in_child(plan, failure);
  }
  return pid;
}

// A program that was written a moment ago is "busy" as long as some other thread's child, between its
// fork and its exec, still holds the descriptor it was written through. That passes by itself.
Result<int> spawn_patiently(const SpawnPlan& plan) {
  static constexpr int attempts = 50;
  for (int attempt = 1;; ++attempt) {
    int exec_error = 0;
    Result<int> pid = spawn_here(plan, exec_error);
    if (exec_error != ETXTBSY || attempt == attempts) return pid;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// "Die with the parent" (PR_SET_PDEATHSIG) really means with the thread that forked. So one thread
// that never ends forks for all.
class Spawner {
 public:
  Spawner() : process_(getpid()) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    // It takes no signals, so that no handler of this process runs in a child before its exec.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      usable_ = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // A process forked without exec has this object but not its thread.
  bool usable() const { return usable_ && process_ == getpid(); }

  Result<int> run(const SpawnPlan& plan) {
    Order order{&plan, fail(Code::internal, "not started"), false};
    std::unique_lock lock(mutex_);
    orders_.push_back(&order);
    changed_.notify_all();
    changed_.wait(lock, [&] { return order.done; });
    return std::move(order.result);
  }

 private:
  struct Order {
    const SpawnPlan* plan;
    Result<int> result;
    bool done;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !orders_.empty(); });
      Order& order = *orders_.front();
      orders_.pop_front();
      lock.unlock();
      Result<int> result = spawn_patiently(*order.plan);
      lock.lock();
      order.result = std::move(result);
      order.done = true;
      changed_.notify_all();
    }
  }

  pid_t process_;
  bool usable_ = true;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order*> orders_;
};

}  // namespace

Code spawn_code(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Code::unavailable;
    case EACCES:
    case EPERM:
      return Code::denied;
    case ENOEXEC:
    case E2BIG:
    case ELOOP:
    case ENAMETOOLONG:
      return Code::invalid;
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Code::exhausted;
    default:
      return Code::internal;
  }
}

Result<int> spawn(const SpawnPlan& plan) {
  static std::mutex mutex;
  static Spawner* spawner = nullptr;  // never destroyed: its thread lives to the end
  Spawner* current = nullptr;
  {
    const std::scoped_lock lock(mutex);
    if (spawner == nullptr || !spawner->usable()) spawner = new Spawner;
    current = spawner;
  }
  if (!current->usable()) return fail(Code::exhausted, "{}: no thread left to start it from", plan.program);
  SpawnPlan own = plan;
  own.priority = getpriority(PRIO_PROCESS, 0);
  return current->run(own);
}

}  // namespace furlong::internal
