#pragma once
// Registers and spills from the messages of NVIDIA's assembler, which CUDA and NVIDIA's OpenCL share.

#include <cstdint>
#include <optional>
#include <string_view>

namespace furlong::device {

/// The largest over the log's kernels; nullopt where the log does not say.
struct PtxasFacts {
  std::optional<int> registers;
  std::optional<std::uint64_t> spill_bytes;   ///< stores and loads together
  std::optional<std::uint64_t> shared_bytes;  ///< static
};

/// Reads "Used 40 registers, 4352 bytes smem" and "16 bytes spill stores, 24 bytes spill loads".
PtxasFacts parse_ptxas_log(std::string_view log);

}  // namespace furlong::device
