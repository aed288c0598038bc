#pragma once
// From raw windows to samples: takes the heat's common level out, pulls in wild windows, and gives the
// log gain over base of every variant in every heat. Internal to furlong/stats.

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace furlong::stats::internal {

/// One heat in natural logarithms of cost. log_cost[0] is base's first window; NaN: not timed.
struct LogHeat {
  std::vector<double> log_cost;
  double base_again = 0;
  /// Mean of base's windows, or the one that it has.
  double base() const {
    if (std::isnan(base_again)) return log_cost[0];
    return std::isnan(log_cost[0]) ? base_again : (log_cost[0] + base_again) / 2;
  }
};

/// Every window, base's and the challengers' alike, is pulled towards what is expected of it (the heat's
/// level plus the variant's offset) when it is more than `reach` scales away. Both sides of a comparison
/// are treated the same, so noise of any shape that they share leaves no bias, which clipping the ratios
/// would. One wild window is an accident, two in a row on the same side are the kernel: the second is left as
/// it is, so that a variant that really changed is not held at its old place. The expectation uses earlier
/// heats only, except in the opening: the first `opening` heats are held back, fitted by median polish (Tukey
/// 1977) and then treated together. Not thread safe.
class WindowFilter {
 public:
  WindowFilter(std::size_t variants, int opening, double reach);

  /// Log gains over base of the heats that became ready: none during the opening, all of them at its
  /// end, then one a heat. gains[0] is 0; NaN: not timed. Base has at least one window in `heat`.
  /// The span is valid until the next call.
  std::span<const std::vector<double>> add(LogHeat heat);

  bool opening() const { return opened_ < opening_; }
  /// Standard deviation of one window after pulling in, over all variants.
  double scale() const { return scale_; }

 private:
  void fit_opening();
  std::vector<double> clean(const LogHeat& heat);
  void renew_expectations();
  double level(const LogHeat& heat);
  template <class F>
  void each_window(const LogHeat& heat, F use) const;

  std::size_t variants_;
  int opening_, opened_ = 0;
  double reach_, clipped_variance_;
  std::vector<LogHeat> held_;
  std::vector<double> offset_;                 // expected log cost over base, per variant
  std::vector<double> cost_sum_, cost_count_;  // cleaned samples behind it
  std::vector<int> last_side_;  // where the variant's last window was out of reach: 1 slow, -1 fast, 0 not
  double scale_ = 0, squares_ = 0, freedom_ = 0;
  std::vector<double> scratch_;
  std::vector<std::vector<double>> ready_;
};

}  // namespace furlong::stats::internal
