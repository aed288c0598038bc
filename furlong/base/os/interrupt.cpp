#include "furlong/base/os/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "furlong/base/os/internal/abandoned.h"

namespace furlong {
namespace {

// Everything here is leaked on purpose: handlers and the watching thread may run until the very end.
struct Registry {
  std::mutex mutex;
  std::set<std::string> folders;
  std::multiset<int> groups;
};

Registry& registry() {
  static Registry* const the = new Registry;
  return *the;
}

std::stop_source& source() {
  static std::stop_source* const the = new std::stop_source;
  return *the;
}

std::atomic<int> first_signal{0};
std::atomic<int> signals_seen{0};
// Written before the handlers are installed, but they run on any thread.
std::atomic<int> pipe_to_watcher{-1};

// The handler only counts and wakes the watching thread: nearly nothing else is allowed in it.
extern "C" void furlong_on_signal(int signal) {
  const int saved = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  // Someone who asks a third time has lost patience with the clean-up (a hanging network drive).
  if (signals_seen.fetch_add(1) >= 2) _exit(128 + signal);
  const auto byte = static_cast<unsigned char>(signal);
  while (write(pipe_to_watcher, &byte, 1) < 0 && errno == EINTR) {
  }
  errno = saved;
}

[[noreturn]] void clean_up_and_end(int signal) {
  Registry& all = registry();
  // The lock is never given back, so that no thread can register (and thus make) anything any more.
  all.mutex.lock();
  for (const int group : all.groups) ::kill(-group, SIGKILL);
  for (const std::string& folder : all.folders) static_cast<void>(internal::remove_folder_stubbornly(folder));
  _exit(128 + signal);
}

// False when the system has no thread left.
template <class Work>
bool detach(Work work) {
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void watch(int pipe) {
  for (int count = 1;; ++count) {
    unsigned char signal = 0;
    const ssize_t got = read(pipe, &signal, 1);
    if (got < 0 && errno == EINTR) {
      --count;
      continue;
    }
    if (got != 1) return;
    if (count >= 2) clean_up_and_end(signal);
    // On a thread of its own: the token's callbacks may take long, and the second signal must be heard.
    if (!detach([] { source().request_stop(); })) source().request_stop();
  }
}

bool install() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  // The watcher takes no signals itself: they interrupt other threads, which is what they are for.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool watching = detach([pipe = ends[0]] { watch(pipe); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!watching) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  pipe_to_watcher = ends[1];
  struct sigaction action{};
  action.sa_handler = furlong_on_signal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current{};
    if (signal == SIGHUP && sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN)
      continue;
    sigaction(signal, &action, nullptr);
  }
  return true;
}

}  // namespace

std::stop_token stop_on_interrupt() {
  // Without a pipe or a thread (none left) the signals keep their default action: they end the program.
  static const bool installed = install();
  static_cast<void>(installed);
  return source().get_token();
}

int interrupt_signal() { return first_signal; }

void register_for_cleanup(const std::filesystem::path& folder) {
  const std::scoped_lock lock(registry().mutex);
  registry().folders.insert(folder.string());
}
void unregister_from_cleanup(const std::filesystem::path& folder) {
  const std::scoped_lock lock(registry().mutex);
  registry().folders.erase(folder.string());
}
void register_child_group(int pid) {
  const std::scoped_lock lock(registry().mutex);
  registry().groups.insert(pid);
}
void unregister_child_group(int pid) {
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().groups.find(pid);
  if (found != registry().groups.end()) registry().groups.erase(found);
}

}  // namespace furlong
