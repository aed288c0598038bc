#pragma once
// Seconds of continuous work of one variant: the turns of the plain rule, and what a power counter can
// resolve.

#include <optional>
#include <vector>

#include "furlong/race/internal/sampler.h"

namespace furlong::race {

struct LongWindow {
  double mean_ms = 0;             ///< one pipeline, the first of each slice left out
  double launches = 0;            ///< all of them
  double elapsed_s = 0;           ///< by the race's clock
  std::optional<double> joules;   ///< by the device's counter
  std::vector<float> samples_ms;  ///< when asked for
};

/// Works for `seconds` at least, the device held throughout. Errors are the device's; `timeout` also when
/// stopped (see Context::stop).
Result<LongWindow> long_window(const Context& context, const Options& options, Sampler& sampler,
                               Entrant& entrant, double seconds);

}  // namespace furlong::race
