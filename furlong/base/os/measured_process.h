#pragma once
// A child run to its end under a limit on the memory of its whole process tree, which is measured.

#include <cstdint>
#include <limits>
#include <stop_token>
#include <string_view>

#include "furlong/base/os/process.h"

namespace furlong {

struct MeasuredRequest {
  /// Its address_space_bytes, control_group and guarded are set here. No grace_s: all is killed at once.
  ProcessRequest process;
  std::uint64_t memory_cap_bytes = 0;  ///< of the tree; 0: none
  /// Whether, without a control group, each process may reserve as much address space as it likes (sanitizers
  /// and some run times reserve terabytes).
  bool any_address_space = false;
  double timeout_s = std::numeric_limits<double>::infinity();
  std::stop_token stop;
};

/// By what the memory was measured, and limited.
enum class MemoryMeter {
  /// The system counted, and killed at the limit (control group version 2: memory.peak, memory.max). Counts
  /// what
  /// was cached of files, too.
  control_group,
  /// Resident sets of the tree were added up every kSamplePeriod, and the tree was killed when a sum was over
  /// the
  /// cap; with the largest of the children that were waited for (ru_maxrss). Besides each process had a
  /// generous
  /// limit on its address space, address_space_limit().
  sampled,
};
std::string_view memory_meter_name(MemoryMeter meter);  ///< "control group", "sampled"

/// Ten milliseconds, shorter ones at first: what a tree can fill in them may go unseen, and passes the cap.
inline constexpr std::int64_t kSamplePeriodNs = 10'000'000;
/// Eight times the cap and 16 GiB: address space that is reserved and not used is no memory, so this only
/// stops what would fill the machine between two samples.
std::uint64_t address_space_limit(std::uint64_t memory_cap_bytes);

struct MeasuredEnd {
  ProcessEnd end;
  double seconds = 0;            ///< wall time, from before its start
  std::uint64_t peak_bytes = 0;  ///< of the tree
  MemoryMeter meter = MemoryMeter::sampled;
  bool over_cap = false;  ///< it was killed for its memory, or its peak was found to be over the cap
};

/// The errors of Processes::start. Nothing of the tree that was seen is left when it returns; nothing of its
/// process group when this process is killed meanwhile. Thread safe.
Result<MeasuredEnd> run_measured(const MeasuredRequest& request, Processes& processes = system_processes());

}  // namespace furlong
