#include "furlong/stats/internal/window_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "furlong/stats/centre.h"

namespace furlong::stats::internal {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kPolishSweeps = 3;
constexpr int kScaleSteps = 4;
// Timers count in steps, so the windows of an even kernel are often exactly equal: a scale of 0 would
// then pull everything in.
constexpr double kScaleFloor = 5e-5;

}  // namespace

WindowFilter::WindowFilter(std::size_t variants, int opening, double reach)
    : variants_(variants),
      opening_(std::max(opening, 2)),
      reach_(reach),
      clipped_variance_(clipped_variance(reach)),
      offset_(variants, kNaN),
      cost_sum_(variants, 0.0),
      cost_count_(variants, 0.0),
      last_side_(variants, 0) {}

// Calls use(variant, log cost) for every window of the heat, base's two among them.
template <class F>
void WindowFilter::each_window(const LogHeat& heat, F use) const {
  for (std::size_t v = 0; v < variants_; ++v)
    if (!std::isnan(heat.log_cost[v])) use(v, heat.log_cost[v]);
  if (!std::isnan(heat.base_again)) use(0, heat.base_again);
}

double WindowFilter::level(const LogHeat& heat) {
  scratch_.clear();
  each_window(heat, [&](std::size_t v, double x) {
    if (!std::isnan(offset_[v])) scratch_.push_back(x - offset_[v]);
  });
  return median_in_place(scratch_);
}

std::span<const std::vector<double>> WindowFilter::add(LogHeat heat) {
  ready_.clear();
  if (!opening()) {
    ready_.push_back(clean(heat));
    renew_expectations();
    return ready_;
  }
  held_.push_back(std::move(heat));
  if (++opened_ < opening_) return {};
  fit_opening();
  for (const LogHeat& held : held_) ready_.push_back(clean(held));
  held_.clear();
  renew_expectations();
  return ready_;
}

void WindowFilter::fit_opening() {
  // Median polish of windows into heat level + variant offset.
  std::fill(offset_.begin(), offset_.end(), 0.0);
  std::vector<double> levels(held_.size());
  std::vector<std::vector<double>> residual(variants_);
  for (int sweep = 0; sweep < kPolishSweeps; ++sweep) {
    for (auto& list : residual) list.clear();
    for (std::size_t h = 0; h < held_.size(); ++h) {
      levels[h] = level(held_[h]);
      each_window(held_[h], [&](std::size_t v, double x) { residual[v].push_back(x - levels[h]); });
    }
    for (std::size_t v = 0; v < variants_; ++v) offset_[v] = median(residual[v]);  // NaN: never timed
  }
  std::vector<double> left;
  for (std::size_t v = 0; v < variants_; ++v)
    for (double x : residual[v]) left.push_back(x - offset_[v]);
  // Start from the half that cannot be wild, then Huber's proposal 2 on all. The fit has used up
  // one heat in each series.
  const auto heats = static_cast<double>(held_.size());
  const double freedom = heats / (heats - 1);
  scale_ = std::max(kScaleFloor, mad_scale(left) * std::sqrt(freedom));
  for (int step = 0; step < kScaleSteps; ++step) {
    double squares = 0;
    for (double x : left) squares += std::pow(clip(x, 0, reach_ * scale_), 2);
    scale_ = std::max(kScaleFloor,
                      std::sqrt(freedom * squares / (static_cast<double>(left.size()) * clipped_variance_)));
  }
  const double base = offset_[0];
  for (double& offset : offset_) offset -= base;
}

std::vector<double> WindowFilter::clean(const LogHeat& heat) {
  const double centre = level(heat);
  const double width = reach_ * scale_;
  std::vector<double> gains(variants_, kNaN);
  double base = 0, base_windows = 0, windows = 0;
  each_window(heat, [&](std::size_t v, double x) {
    double cleaned = x;
    if (!std::isnan(offset_[v])) {
      const double expected = centre + offset_[v];
      const int side = x > expected + width ? 1 : x < expected - width ? -1 : 0;
      const double pulled = clip(x, expected, width);
      if (side != last_side_[v]) cleaned = pulled;
      last_side_[v] = side;
      squares_ += std::pow(pulled - expected, 2);
      ++windows;
    }
    if (v == 0) {
      base += cleaned;
      ++base_windows;
    } else {
      gains[v] = cleaned;
    }
  });
  base /= base_windows;
  gains[0] = 0;
  for (std::size_t v = 1; v < variants_; ++v) {
    if (std::isnan(gains[v])) continue;
    const double cost = gains[v] - base;
    gains[v] = -cost;
    cost_sum_[v] += cost;
    ++cost_count_[v];
  }
  if (windows > 1) freedom_ += windows - 1;  // one went into the level
  return gains;
}

void WindowFilter::renew_expectations() {
  for (std::size_t v = 1; v < variants_; ++v)
    if (cost_count_[v] > 0) offset_[v] = cost_sum_[v] / cost_count_[v];
  if (freedom_ > 0) scale_ = std::max(kScaleFloor, std::sqrt(squares_ / (freedom_ * clipped_variance_)));
}

}  // namespace furlong::stats::internal
