#pragma once
// The recorded windows of bench/data/h200-aa-trace.csv.gz (see bench/data/README.md).

#include <filesystem>
#include <string>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::bench {

/// One scenario: equal kernels, one window of launches each per heat. All times in ms.
struct Trace {
  struct Window {
    double median = 0;           ///< of the launches after the first
    double mean_with_first = 0;  ///< of all launches
    double mean = 0;             ///< of the launches after the first
    double first = 0;            ///< the first launch
  };
  std::string scenario;
  std::size_t kernels = 0;
  std::vector<std::vector<Window>> heats;  ///< [heat][kernel]
  double launch_ms = 0;                    ///< median over all windows
  double first_launch_ms = 0;
};

/// Reads the gzip file. `unavailable` when it is not there, `corrupt` with the line for anything that
/// does not fit: a missing kernel, a wrong column count, a time that is not positive.
Result<std::vector<Trace>> read_traces(const std::filesystem::path& path);

}  // namespace furlong::bench
