#include "furlong/shard/engine/slurm/internal/request.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/text.h"

namespace furlong::shard::slurm {
namespace {

// In single quotes nothing is special to sh but the quote itself.
std::string sh_quoted(std::string_view text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

}  // namespace

std::string JobRequest::text() const {
  if (memory_mib == 0 && minutes == 0) return "the partition's defaults";
  std::string text;
  if (memory_mib != 0) text = fmt::format("{} MiB", memory_mib);
  if (minutes != 0) text += fmt::format("{}{} min", text.empty() ? "" : " and ", minutes);
  return text;
}

std::uint64_t memory_class_mib(std::uint64_t least_mib) {
  std::uint64_t unit = 1;
  while (unit * 8 <= least_mib) unit *= 2;
  // Now least < 8 units; 4 units <= least unless it is below 4 MiB. A remainder rounds up, to 8 units at
  // most.
  return std::max<std::uint64_t>(4, (least_mib + unit - 1) / unit) * unit;
}

JobRequest job_request(const EngineTask& task, const SlurmOptions& options) {
  JobRequest request;
  if (task.memory_bytes != 0) {
    const double mib_wanted =
        std::ceil(static_cast<double>(task.memory_bytes) * options.memory_margin / (1 << 20));
    const auto mib = static_cast<std::uint64_t>(std::min(mib_wanted, 1e15));
    request.memory_mib = memory_class_mib(std::max(kLeastMemoryMib, mib));
  }
  if (task.seconds > 0 && std::isfinite(task.seconds)) {
    double seconds = options.time_floor_s;
    while (seconds < task.seconds * options.time_factor) seconds *= 2;
    request.minutes = static_cast<std::uint64_t>(std::ceil(seconds / 60));
  }
  return request;
}

std::string index_list(std::vector<std::uint32_t> numbers) {
  std::ranges::sort(numbers);
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[begin]);
    if (end - begin > 1) text += "-" + std::to_string(numbers[end - 1]);
  }
  return text;
}

std::string job_name(const std::string& plan, std::uint32_t offset) {
  return fmt::format("furlong-{}+{}", plan, offset);
}

std::optional<std::uint32_t> offset_of(std::string_view name, const std::string& plan) {
  const std::string prefix = "furlong-" + plan + "+";
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto offset = parse_integer(name.substr(prefix.size()));
  if (!offset || *offset < 0 || *offset > 0xFFFFFFFF) return std::nullopt;
  return static_cast<std::uint32_t>(*offset);
}

std::string job_script(std::span<const std::string> command, std::uint32_t offset) {
  std::string script = "#!/bin/sh\n# A shard of a plan of Furlong, as an element of a job array.\n" +
                       fmt::format("shard=$(({} + SLURM_ARRAY_TASK_ID))\nexec", offset);
  for (const std::string& argument : command)
    script += argument == kShardArgument ? " \"$shard\"" : " " + sh_quoted(argument);
  return script + "\n";
}

}  // namespace furlong::shard::slurm
