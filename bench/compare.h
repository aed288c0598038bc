#pragma once
// Compares two result files of one bench, metric by metric.

#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::bench {

enum class Change { same, better, regressed, added, gone };
std::string_view change_name(Change change);

struct MetricChange {
  std::string metric;
  double before = 0, after = 0;  ///< NaN on the side where it is not
  Change change = Change::same;
};

struct Comparison {
  std::vector<MetricChange> metrics;  ///< in the order of the first file, then what only the second has
  std::vector<std::string> notes;     ///< what else differs: status, device, compiler
  /// A metric regressed or is gone, or the second run is not ok while the first was.
  bool regressed() const;
  std::string text() const;

  bool status_worse = false;
};

/// The texts of two result files (bench/harness.h); `before_name` and `after_name` name them in errors. Two
/// values are the same when they differ by no more than the noise that the first file states. `invalid`: not
/// a result file, or results of two different benches.
Result<Comparison> compare(std::string_view before, std::string_view before_name, std::string_view after,
                           std::string_view after_name);

}  // namespace furlong::bench
