#pragma once
// The names of CUDA's architectures.

#include <cstdint>
#include <string_view>

namespace furlong {

/// Compute capability times ten: 90 of "sm_90" and "sm_90a"; 0 of anything else. Pure.
std::int64_t compute_capability(std::string_view architecture);

}  // namespace furlong
