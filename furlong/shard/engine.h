#pragma once
// Where the jobs of a plan run: engine/local (this machine), engine/slurm. An engine only sees to it that
// each job is carried out somewhere; what counts as done is in the receipt cache alone (furlong/shard/run.h).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "furlong/shard/plan.h"
#include "furlong/shard/progress.h"

namespace furlong::shard {

/// A job that an engine is to carry out.
struct EngineTask {
  ShardId shard = 0;
  std::string name;                ///< for people: "shard 3"
  std::uint64_t memory_bytes = 0;  ///< what its peak was predicted to be; 0: unknown
  double seconds = 0;              ///< what it was predicted to take; 0: unknown
};

/// How a job ended.
struct TaskEnd {
  ShardId shard = 0;
  std::optional<Error> error;    ///< none: it says that its receipt is in the cache
  double seconds = 0;            ///< wall time
  std::uint64_t peak_bytes = 0;  ///< of its process; 0: unknown
};

struct EngineOptions {
  std::uint64_t memory_bytes = 0;  ///< that jobs at work together may be predicted to take; 0: no limit
  unsigned jobs = 1;               ///< at work together
  std::stop_token stop;            ///< ends what is at work, cleanly, and starts nothing more
  Progress progress;               ///< step "run"
};

/// One thread at a time.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  /// Carries the tasks out, in this order as far as they are admitted. `ended` is told of each that was
  /// begun, one at a time; where it returns false nothing more is begun. Returns when nothing is at work any
  /// more. An Error is the engine's own (no process, no scheduler), `timeout` when stopped; that of a task is
  /// in its TaskEnd.
  virtual Status run(std::span<const EngineTask> tasks, const EngineOptions& options,
                     const std::function<bool(const TaskEnd&)>& ended) = 0;
};

}  // namespace furlong::shard
