#pragma once
// How many files and connections this process may have open.

#include <cstdint>

namespace furlong {

/// Raises this process's own limit to `wanted` where the system allows it (the hard limit of `ulimit -n`),
/// never lowers it, and returns the limit that holds then. 0: the system does not say.
std::uint64_t allow_open_files(std::uint64_t wanted);

}  // namespace furlong
