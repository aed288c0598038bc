#pragma once
// The "machine code" that the made-up NVRTC makes and the made-up driver loads: the host shim's shared object
// (an ELF file, as a cubin is), followed by a table of its kernels and a digest.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/bytes.h"

namespace furlong::fake {

struct ImageEntry {
  std::string lowered;  ///< the name by which the driver finds it
  std::string name;     ///< as the request wrote it, and as the object's table holds it
  int registers = 32;
  std::uint64_t shared_bytes = 0;  ///< static
  int max_threads = 1024;
};

struct Image {
  std::string arch;  ///< "sm_90"
  int toolkit_major = 13;
  std::vector<ImageEntry> entries;
  std::string object;  ///< the ELF file

  std::string bytes() const;
  /// From where a driver finds it: the length is told by the image itself. Nothing when it is none, or
  /// damaged.
  static std::optional<Image> read(const void* at);
};

/// Length of the ELF file that begins here by its own tables; 0 when it is none.
std::uint64_t elf_length(const void* at);

}  // namespace furlong::fake
