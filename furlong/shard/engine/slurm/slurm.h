#pragma once
// The engine "slurm": shards as elements of job arrays, through Slurm's own commands. What it asks for, what
// it submits again and what it leaves alone: docs/shards.md.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"
#include "furlong/shard/engine.h"

namespace furlong::shard::slurm {

struct SlurmOptions {
  /// What a job runs, on any node and in this process's working folder: argv, in which each argument that is
  /// "{}" and nothing else becomes its shard's number. Must leave a receipt where has_receipt looks.
  std::vector<std::string> command;
  /// Names the plan in the queue: jobs are called "furlong-<plan>+<offset>". Letters and digits; two plans,
  /// or one plan with two caches, must not share it.
  std::string plan;
  /// Of the jobs' output, "<array>_<index>.log" each; on a file system that the nodes share. Made when
  /// absent.
  std::filesystem::path logs;
  /// Whether a shard's receipt is in the cache now. From the thread that calls run().
  std::function<bool(ShardId)> has_receipt;
  /// How often a shard whose job was lost is submitted again.
  unsigned resubmit = 2;
  /// Memory asked for: the prediction times this, in whole MiB, up to the next class (memory_class_mib).
  double memory_margin = 1.1;
  /// Time asked for: the prediction times this, at least the floor, up to the floor times a power of two.
  double time_factor = 3;
  double time_floor_s = 600;
  unsigned cpus = 1;  ///< of a job
  /// More for sbatch ("--partition=long"), after its own arguments, so that they win.
  std::vector<std::string> sbatch_arguments;
  /// Exit codes by which the command says that the work itself failed: it would fail again.
  std::vector<int> final_exit_codes = {2, 3};
  double poll_s = 10;              ///< longest time between two looks at the queue
  double patience_s = 300;         ///< how long Slurm may not answer before the run gives up
  double receipt_patience_s = 30;  ///< how long a shared file system may take to show a receipt
  /// What is worth a line as it happens (arrays submitted, shards submitted again and why); may be empty.
  std::function<void(const std::string&)> tell;
};

/// EngineOptions::jobs limits the elements at work over all arrays, 0: as many as Slurm gives; its
/// memory_bytes is not used, since Slurm admits by the memory of its nodes. Elements of earlier runs of the
/// plan that are still in the queue are waited for. `invalid` for options that make no sense or that sbatch
/// refuses, `unavailable` for a missing command and for a Slurm that stays silent (what is queued then stays
/// queued), `denied` while another process runs the plan with the same folder of logs, `timeout` when
/// stopped: everything of it is then out of the queue, or the message names what is not.
std::unique_ptr<Engine> make_engine(SlurmOptions options, Processes& processes = system_processes(),
                                    Clock& clock = system_clock());

}  // namespace furlong::shard::slurm
