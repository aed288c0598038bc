#pragma once
// What a job asks Slurm for, and how an array is written: names, indices, script. Pure functions.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "furlong/shard/engine/slurm/slurm.h"

namespace furlong::shard::slurm {

/// Elements of an array share one. 0: nothing is asked for, and the partition's default holds.
struct JobRequest {
  std::uint64_t memory_mib = 0;
  std::uint64_t minutes = 0;
  auto operator<=>(const JobRequest&) const = default;
  std::string text() const;  ///< "640 MiB and 20 min"
};

/// The least 4, 5, 6 or 7 times a power of two that is not below `least_mib`: at most a quarter too much, and
/// four classes an octave, so that shards of one budget share few arrays.
std::uint64_t memory_class_mib(std::uint64_t least_mib);
/// The program itself takes some, whatever was predicted.
inline constexpr std::uint64_t kLeastMemoryMib = 64;

JobRequest job_request(const EngineTask& task, const SlurmOptions& options);

/// "0-3,7" of numbers in any order, none twice.
std::string index_list(std::vector<std::uint32_t> numbers);

/// An element's index is its shard's number less the offset, since Slurm limits indices (MaxArraySize).
std::string job_name(const std::string& plan, std::uint32_t offset);
/// The offset of a job of this plan; nothing for a job of anything else.
std::optional<std::uint32_t> offset_of(std::string_view name, const std::string& plan);

/// Stands for the shard's number where it is a whole argument; within one, such as a path, it is text.
inline constexpr std::string_view kShardArgument = "{}";

/// A script for sh that becomes the command of the element that it runs as. All other arguments arrive as
/// they are, whatever they hold.
std::string job_script(std::span<const std::string> command, std::uint32_t offset);

}  // namespace furlong::shard::slurm
