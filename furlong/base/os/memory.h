#pragma once
// What memory there is and what this process has used.

#include <cstddef>
#include <cstdint>
#include <optional>

namespace furlong {

/// Highest resident set of this process so far (VmHWM), in bytes; 0 where the system does not say.
std::uint64_t peak_resident_bytes();
/// The same of another process; 0 as well when it has ended.
std::uint64_t peak_resident_bytes(int pid);
/// MemAvailable, or what a container or batch job (control group) leaves of it, in bytes; 0 where the system
/// does not say.
std::uint64_t available_memory_bytes();
std::uint64_t total_memory_bytes();
/// What of this process's resident set is mapped files, in bytes; 0 where the system does not say.
std::uint64_t resident_file_bytes();

/// A part of this process's address space that maps a file and that nobody can write to.
struct FileMapping {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
/// The one that holds an address; nothing where that is other memory.
std::optional<FileMapping> file_mapping_at(const void* address);
/// Takes its pages out of this process: they no longer count as its memory, and are read again, most likely
/// from the system's cache, where somebody looks at them. Any thread may be reading meanwhile.
void drop_resident(const FileMapping& mapping);

/// Involuntary context switches of the calling thread so far: a race heat during which it grew was
/// descheduled.
std::uint64_t involuntary_switches();

}  // namespace furlong
