#include "furlong/shard/engine/local/local.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/shard/pace.h"

namespace furlong::shard::local {
namespace {

class LocalEngine : public Engine {
 public:
  explicit LocalEngine(Job job) : job_(std::move(job)) {}
  std::string_view name() const override { return "local"; }
  Status run(std::span<const EngineTask> tasks, const EngineOptions& options,
             const std::function<bool(const TaskEnd&)>& ended) override;

 private:
  const Job job_;
};

// One run: which tasks are left, and what those at work take together.
class Admission {
 public:
  Admission(std::span<const EngineTask> tasks, const EngineOptions& options,
            const std::function<bool(const TaskEnd&)>& ended)
      : options_(options), ended_(ended), pace_("run", tasks.size(), options.progress) {
    for (const EngineTask& task : tasks) waiting_.push_back(&task);
  }

  void refuse_too_large();
  void work(const Job& job);
  void end() { pace_.end(); }

 private:
  // The first that fits; null when none does now. With the lock held.
  const EngineTask* admit();
  void tell(TaskEnd end);

  const EngineOptions& options_;
  const std::function<bool(const TaskEnd&)>& ended_;
  Pace pace_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<const EngineTask*> waiting_;
  std::uint64_t taken_bytes_ = 0;
  bool halted_ = false;
};

void Admission::refuse_too_large() {
  if (options_.memory_bytes == 0) return;
  std::vector<const EngineTask*> fitting;
  for (const EngineTask* task : waiting_) {
    if (task->memory_bytes <= options_.memory_bytes) {
      fitting.push_back(task);
      continue;
    }
    if (halted_) continue;
    TaskEnd end;
    end.shard = task->shard;
    end.error = fail(Code::exhausted,
                     "{} is predicted to take {}, and there are {}: split it (furlong shard rebudget), or "
                     "give more memory",
                     task->name, human_bytes(task->memory_bytes), human_bytes(options_.memory_bytes));
    tell(std::move(end));
  }
  waiting_ = std::move(fitting);
}

const EngineTask* Admission::admit() {
  for (auto task = waiting_.begin(); task != waiting_.end(); ++task) {
    if (options_.memory_bytes != 0 && taken_bytes_ + (*task)->memory_bytes > options_.memory_bytes) continue;
    const EngineTask* admitted = *task;
    waiting_.erase(task);
    taken_bytes_ += admitted->memory_bytes;
    return admitted;
  }
  return nullptr;
}

void Admission::tell(TaskEnd end) {
  if (!ended_(end)) halted_ = true;
  pace_.advance(1);
}

void Admission::work(const Job& job) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (halted_ || options_.stop.stop_requested() || waiting_.empty()) return;
    const EngineTask* task = admit();
    if (task == nullptr) {  // somebody is at work, else the first would have fitted
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const std::uint64_t running = pace_.begin(task->name);
    const std::int64_t begin_ns = system_clock().now_ns();
    TaskEnd end;
    try {
      end = job(*task, options_.stop);
    } catch (const std::bad_alloc&) {
      end.error = fail(Code::exhausted, "{}: no memory is left", task->name);
    }
    end.shard = task->shard;
    end.seconds = static_cast<double>(system_clock().now_ns() - begin_ns) * 1e-9;
    pace_.finish(running);
    lock.lock();
    taken_bytes_ -= task->memory_bytes;
    tell(std::move(end));
    changed_.notify_all();
  }
}

Status LocalEngine::run(std::span<const EngineTask> tasks, const EngineOptions& options,
                        const std::function<bool(const TaskEnd&)>& ended) {
  Admission admission(tasks, options, ended);
  admission.refuse_too_large();
  const std::size_t workers = std::min<std::size_t>(std::max(1u, options.jobs), tasks.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < workers; ++i) threads.emplace_back([&] { admission.work(job_); });
    admission.work(job_);
  }
  admission.end();
  if (options.stop.stop_requested()) return fail(Code::timeout, "the run was stopped");
  return {};
}

}  // namespace

std::unique_ptr<Engine> make_engine(Job job) { return std::make_unique<LocalEngine>(std::move(job)); }

}  // namespace furlong::shard::local
