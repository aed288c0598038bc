#pragma once
// What is made of a job that ended without a receipt: whether its shard is submitted again, and with what.

#include <filesystem>
#include <span>
#include <string>

#include "furlong/shard/engine/slurm/internal/commands.h"

namespace furlong::shard::slurm {

enum class Phase { pending, running, ended };
/// Of Slurm's word for a job's state. A word that is not known is taken for one of a job that still goes on.
Phase phase_of(std::string_view state);

/// What its log says of the end.
struct LogEnd {
  bool over_memory = false;  ///< Slurm or the kernel wrote that it took too much
  std::string last_line;     ///< of the command's own; may be empty
};
LogEnd parse_log(std::string_view log);
/// Of a log that is absent or can't be read: nothing.
LogEnd read_log(const std::filesystem::path& file);

struct Verdict {
  bool again = false;
  JobRequest request;             ///< of the next submission
  Code code = Code::unavailable;  ///< when it is not submitted again
  std::string why;                ///< "node n2 failed"
};
/// `end.state` is empty where Slurm has forgotten the job.
Verdict judge(const JobEnd& end, const LogEnd& log, const JobRequest& request,
              std::span<const int> final_exit_codes);

}  // namespace furlong::shard::slurm
