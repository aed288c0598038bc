#pragma once
// Tasks that make tasks, shared out among workers who steal from each other.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::shard {

/// Tasks are coarse (a segment of a scan, a price), so one lock for all queues costs nothing.
template <class Task>
class TaskPool {
 public:
  /// The tasks are dealt out in runs: what is near in the list tends to stay with one worker.
  TaskPool(unsigned workers, std::vector<Task> tasks) : queues_(workers), open_(tasks.size()) {
    for (std::size_t i = 0; i < tasks.size(); ++i)
      queues_[i * workers / tasks.size()].push_back(std::move(tasks[i]));
  }

  /// The worker's own oldest task, else the last of the longest queue. Waits while any task is being worked
  /// on, since that may make more; nothing once all are done or the pool was halted.
  std::optional<Task> next(unsigned worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (halted_ || open_ == 0) return std::nullopt;
      if (!queues_[worker].empty()) return take(queues_[worker], true);
      std::deque<Task>* longest = &queues_[0];
      for (auto& queue : queues_)
        if (queue.size() > longest->size()) longest = &queue;
      if (!longest->empty()) return take(*longest, false);
      changed_.wait(lock);
    }
  }
  /// From within a task, before done().
  void push(unsigned worker, Task task) {
    const std::scoped_lock lock(mutex_);
    ++open_;
    queues_[worker].push_front(std::move(task));
    changed_.notify_one();
  }
  void done() {
    const std::scoped_lock lock(mutex_);
    if (--open_ == 0) changed_.notify_all();
  }
  void halt() {
    const std::scoped_lock lock(mutex_);
    halted_ = true;
    changed_.notify_all();
  }
  bool halted() const {
    const std::scoped_lock lock(mutex_);
    return halted_;
  }

 private:
  static Task take(std::deque<Task>& queue, bool front) {
    Task task = std::move(front ? queue.front() : queue.back());
    front ? queue.pop_front() : queue.pop_back();
    return task;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Task>> queues_;
  std::size_t open_;  // queued or being worked on
  bool halted_ = false;
};

/// Runs `work(worker, task)` for each task and those that it pushes. The first Error halts the pool and is
/// returned; others end with the task that they have in hand.
template <class Task>
Status run_tasks(TaskPool<Task>& pool, unsigned workers, const std::function<Status(unsigned, Task&)>& work) {
  std::mutex mutex;
  std::optional<Error> first;
  const auto loop = [&](unsigned worker) {
    while (std::optional<Task> task = pool.next(worker)) {
      Status status;
      try {
        status = work(worker, *task);
      } catch (const std::bad_alloc&) {
        status = fail(Code::exhausted, "no memory is left");
      }
      if (!status) {
        const std::scoped_lock lock(mutex);
        if (!first) first = status.error();
        pool.halt();
      }
      pool.done();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned worker = 1; worker < workers; ++worker) threads.emplace_back(loop, worker);
    loop(0);
  }
  if (first) return *first;
  return {};
}

}  // namespace furlong::shard
