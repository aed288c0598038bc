#pragma once
// One run of the engine: what is in the queue, what is settled, what is submitted next. One thread.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/shard/engine/slurm/internal/commands.h"
#include "furlong/shard/engine/slurm/internal/judge.h"
#include "furlong/shard/engine/slurm/slurm.h"
#include "furlong/shard/pace.h"

namespace furlong::shard::slurm {

class ArrayRun {
 public:
  /// All must outlive it. `logs` of the options must be absolute and be there.
  ArrayRun(const SlurmOptions& slurm, Commands& commands, Clock& clock, std::span<const EngineTask> tasks,
           const EngineOptions& options, const std::function<bool(const TaskEnd&)>& ended);
  /// As Engine::run.
  Status run();

 private:
  struct Shard {
    const EngineTask* task = nullptr;
    JobRequest request;  // of its next submission
    unsigned resubmitted = 0;
    bool settled = false;
    std::optional<JobId> job;  // that is to leave its receipt; none: to be submitted
    bool begun = false;
    double seconds = 0;
    std::optional<std::uint64_t> pace;
    std::optional<std::int64_t> gone_ns;  // since when it has been out of the queue without a receipt
  };
  struct Array {
    std::uint64_t id = 0;
    bool own = false;                 // else an earlier run's: its elements are cancelled one by one
    std::optional<unsigned> at_once;  // as Slurm was told; none: not known
  };
  struct Group {  // of shards that one array can have
    JobRequest request;
    std::uint32_t offset = 0;
    std::vector<Shard*> shards;
  };
  using Rows = std::vector<JobRow>;

  void adopt(const Rows& rows);
  Status look(const Rows& rows);
  void job_gone(Shard& shard, const JobRow* row, bool cancelled, std::optional<Error>& unanswered);
  void show_running(Shard& shard, const JobRow& row);
  void show_waiting(const Rows& rows);
  void submit_again_or_settle(Shard& shard, const Verdict& verdict);
  void settle(Shard& shard, std::optional<Error> error);
  Status drop_pending();
  Status submit();
  std::vector<Group> groups();
  /// Settles those whose receipt is there by now; whether there were any.
  bool take_receipts(Group& group);
  Status submit_group(Group& group, unsigned at_once);
  Status refused(Group& group, const Error& error);
  /// Takes all of it out of the queue and returns `why`, or what could not be taken out.
  Status cancel_all(Error why);
  std::vector<std::string> jobs_in_queue() const;
  /// None while it may still pass, since `since`; else the error names what is left in the queue.
  Status be_patient(const Error& error, std::optional<std::int64_t>& since);
  bool all_settled() const;
  std::string where(const Shard& shard) const;
  double seconds_since(std::int64_t ns) const { return static_cast<double>(clock_.now_ns() - ns) * 1e-9; }
  void sleep(double seconds);
  void tell(const std::string& line) const {
    if (slurm_.tell) slurm_.tell(line);
  }

  const SlurmOptions& slurm_;
  Commands& commands_;
  Clock& clock_;
  const EngineOptions& options_;
  const std::function<bool(const TaskEnd&)>& ended_;
  const std::int64_t start_ns_;
  std::vector<Shard> shards_;  // in the order of the tasks
  std::vector<Array> arrays_;  // in the order of their submission
  std::uint32_t max_array_size_ = 0;
  bool halted_ = false;  // nothing more is begun
  // Since when squeue, scontrol show job, and all else has had no good answer.
  std::optional<std::int64_t> queue_silent_ns_, ended_silent_ns_, submit_silent_ns_;
  Pace pace_;
  std::optional<std::uint64_t> waiting_pace_;
};

}  // namespace furlong::shard::slurm
