#include "furlong/shard/engine/slurm/internal/judge.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::shard::slurm {
namespace {

constexpr std::array kEnded = {"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                               "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
constexpr std::array kPending = {"PENDING",      "REQUEUED",     "REQUEUE_FED",
                                 "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
// Written into the log by slurmstepd: with its own limit (JobAcctGatherParams=OverMemoryKill, which ends a
// job as if anybody had killed it), and with the kernel's (task/cgroup).
constexpr std::array kOverMemory = {"exceeded memory limit", "Exceeded job memory limit", "oom-kill event",
                                    "oom_kill event"};
constexpr std::size_t kMostLogBytes = 1 << 20;

}  // namespace

Phase phase_of(std::string_view state) {
  if (std::ranges::find(kEnded, state) != kEnded.end()) return Phase::ended;
  if (std::ranges::find(kPending, state) != kPending.end()) return Phase::pending;
  return Phase::running;
}

LogEnd parse_log(std::string_view log) {
  LogEnd end;
  for (const std::string& line : split(log, '\n')) {
    if (line.starts_with("slurmstepd")) {
      end.over_memory |= std::ranges::any_of(
          kOverMemory, [&](const char* phrase) { return line.find(phrase) != std::string::npos; });
      continue;
    }
    if (!trim(line).empty()) end.last_line = one_line(trim(line));
  }
  return end;
}

LogEnd read_log(const std::filesystem::path& file) {
  const auto log = system_files().read(file, kMostLogBytes);
  return log ? parse_log(*log) : LogEnd();
}

Verdict judge(const JobEnd& end, const LogEnd& log, const JobRequest& request,
              std::span<const int> final_exit_codes) {
  const std::string at = end.nodes.empty() || end.nodes == "(null)" ? "" : " on " + end.nodes;
  const std::string said = log.last_line.empty() ? "" : ": " + log.last_line;
  Verdict verdict{true, request, Code::unavailable, ""};
  if (end.state == "OUT_OF_MEMORY" || log.over_memory) {
    const std::string asked = request.memory_mib == 0
                                  ? "its partition gives"
                                  : fmt::format("the {} MiB that were asked for", request.memory_mib);
    verdict = {
        false, request, Code::exhausted,
        fmt::format("it took more memory than {}{}, and would again: split it (furlong shard rebudget), "
                    "or ask for more (a larger margin)",
                    asked, at)};
  } else if (end.state == "CANCELLED") {
    verdict = {false, request, Code::denied, "somebody cancelled it"};
  } else if (end.state == "TIMEOUT") {
    verdict.code = Code::timeout;
    verdict.again = request.minutes != 0;  // else it would have the same time again
    verdict.request.minutes *= 2;
    verdict.why = request.minutes == 0 ? "it ran past its partition's limit of time" + at
                                       : fmt::format("it ran past its {} min{}", request.minutes, at);
  } else if (end.state == "FAILED" && end.signal != 0) {
    verdict.why = fmt::format("it was killed by signal {}{}", end.signal, at);
    // A kernel that has no memory left kills like this, and no cgroup tells: not again with the same.
    if (end.signal == SIGKILL) {
      verdict.again = request.memory_mib != 0;
      verdict.request.memory_mib *= 2;
      verdict.code = Code::exhausted;
      if (!verdict.again)
        verdict.why +=
            ", perhaps for the memory that it took: ask for more than its partition gives (--sbatch=--mem=…)";
    }
  } else if (end.state == "FAILED") {
    verdict.why = fmt::format("exit status {}{}{}", end.exit_code, at, said);
    verdict.code = Code::mismatch;
    verdict.again = std::ranges::find(final_exit_codes, end.exit_code) == final_exit_codes.end();
  } else if (end.state == "NODE_FAIL" || end.state == "BOOT_FAIL") {
    verdict.why = end.nodes.empty() ? "its node failed" : fmt::format("its node {} failed", end.nodes);
  } else if (end.state == "COMPLETED") {
    verdict.why =
        "it ended well" + at + " and left no receipt (is the cache on a file system that all nodes share?)";
  } else if (end.state.empty()) {
    verdict.why = "it is out of the queue without a receipt" + said;
  } else {
    verdict.why = end.state + at;
  }
  return verdict;
}

}  // namespace furlong::shard::slurm
