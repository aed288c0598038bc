#pragma once
// Slurm's commands as calls: sbatch, squeue, scontrol, scancel, with what they print taken apart.

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/os/process.h"
#include "furlong/shard/engine/slurm/internal/request.h"

namespace furlong::shard::slurm {

/// An element of an array, as people and commands name it: "12_3".
struct JobId {
  std::uint64_t array = 0;
  std::uint32_t index = 0;
  auto operator<=>(const JobId&) const = default;
  std::string text() const;
};

/// A line of squeue.
struct JobRow {
  std::uint64_t array = 0;
  /// None: no element, or all of an array that was cancelled before its elements came up.
  std::optional<std::uint32_t> index;
  std::string state;   ///< "RUNNING"
  double seconds = 0;  ///< it has run
  std::string nodes, reason, name;
};

/// What Slurm knows of a job that ended.
struct JobEnd {
  std::string state, nodes;
  int exit_code = 0, signal = 0;
};

struct Submission {
  std::string name, script;
  std::vector<std::uint32_t> indices;
  unsigned at_once = 0;  ///< 0: no limit
  JobRequest request;
  unsigned cpus = 1;
  std::filesystem::path logs;          ///< absolute
  std::vector<std::string> arguments;  ///< more
};

/// Errors of all: `unavailable` for a command that is not there, `timeout` where Slurm did not answer and may
/// yet, `incompatible` where its answer is not understood (quoted), `invalid` where it refuses, with its
/// words.
class Commands {
 public:
  explicit Commands(Processes& processes) : processes_(processes) {}
  /// Whether all four are there.
  Status present();
  /// Indices of arrays are below it.
  Result<std::uint32_t> max_array_size();
  /// All jobs of this user that Slurm still knows, elements one by one. The stop token ends the call.
  Result<std::vector<JobRow>> queue(std::stop_token stop = {});
  /// Nothing where Slurm has forgotten it.
  Result<std::optional<JobEnd>> ended(const JobId& job);
  /// The array's id.
  Result<std::uint64_t> submit(const Submission& submission);
  Status set_at_once(std::uint64_t array, unsigned at_once);
  /// `jobs`: arrays or elements. One that has ended is no error.
  Status cancel(std::span<const std::string> jobs, bool pending_alone);

 private:
  Result<std::string> call(const ProcessRequest& request, std::stop_token stop = {});
  Processes& processes_;
};

/// Whether it may go away by itself.
bool is_passing(const Error& error);

/// Pure parts of queue() and ended().
Result<std::vector<JobRow>> parse_queue(std::string_view text);
Result<std::optional<JobEnd>> parse_job(std::string_view text, const JobId& job);

}  // namespace furlong::shard::slurm
