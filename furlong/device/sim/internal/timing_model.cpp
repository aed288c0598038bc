#include "furlong/device/sim/internal/timing_model.h"

#include <algorithm>
#include <cmath>

namespace furlong::device::internal {

TimingModel::TimingModel(SimTiming timing, std::uint64_t seed)
    : timing_(std::move(timing)), random_(seed, "sim timing") {
  for (const auto& [variant, values] : timing_.trace_ms) series_[variant].values = &values;
}

double TimingModel::gained(const std::string& variant) const {
  const auto found = timing_.gain.find(variant);
  return 1 + (found == timing_.gain.end() ? 0 : found->second);
}

const std::string* TimingModel::trace_key(const std::string& variant) const {
  auto found = timing_.trace_ms.find(variant);
  if (found == timing_.trace_ms.end()) found = timing_.trace_ms.find("*");
  return found == timing_.trace_ms.end() ? nullptr : &found->first;
}

void TimingModel::begin_window(const std::string& variant) {
  first_ = true;
  trace_ = nullptr;
  cost_ms_ = timing_.base_ms / gained(variant);
  const std::string* const key = trace_key(variant);
  if (key == nullptr) {
    step(window_noise_, timing_.window_noise);
    return;
  }
  cost_ms_ = 1 / gained(variant);
  trace_ = &series_.at(*key);
  if (timing_.trace_window == 0) return;
  const std::size_t size = static_cast<std::size_t>(timing_.trace_window);
  const std::size_t windows = trace_->values->size() / size;
  trace_->window = trace_->begun ? (trace_->window + 1) % windows : 0;
  trace_->begun = true;
  trace_->next = trace_->window * size;
}

double TimingModel::trace_value() {
  const std::vector<double>& values = *trace_->values;
  const double value = values[trace_->next++];
  if (timing_.trace_window == 0) {
    trace_->next %= values.size();
    return value;
  }
  // Past the end of its window the series goes on with the same window's steady launches.
  const std::size_t size = static_cast<std::size_t>(timing_.trace_window);
  const std::size_t begin = trace_->window * size;
  if (trace_->next == begin + size) trace_->next = begin + (size > 1 ? 1 : 0);
  return value;
}

// An AR(1) process whose stationary deviation is `deviation` whatever the correlation.
double TimingModel::step(double& state, double deviation) {
  if (deviation == 0) return state = 0;
  const double rho = timing_.autocorrelation;
  return state = rho * state + std::sqrt(1 - rho * rho) * deviation * random_.normal();
}

double TimingModel::drift(double at_s) const {
  double slowness = std::max(0.1, 1 + timing_.ramp_per_s * at_s);
  for (const double step_s : timing_.step_at_s)
    if (at_s >= step_s) slowness *= 1.01;
  return slowness;
}

double TimingModel::launch_ms(double at_s, bool after_flush) {
  const bool first = std::exchange(first_, false);
  if (trace_ != nullptr) return cost_ms_ * trace_value();
  double ms = cost_ms_ * drift(at_s);
  ms *= std::max(0.1, 1 + step(launch_noise_, timing_.noise));
  ms *= std::max(0.1, 1 + window_noise_);
  if (first) ms *= 1 + timing_.first_launch_slow;
  if (after_flush) ms *= 1 + timing_.cold_slow;
  if (timing_.heavy_tail > 0 && random_.uniform() < timing_.heavy_tail) ms *= 1.05 + 0.45 * random_.uniform();
  return ms;
}

double TimingModel::jitter_ms() {
  return timing_.jitter_ms == 0 || trace_ != nullptr ? 0 : timing_.jitter_ms * std::abs(random_.normal());
}

double TimingModel::nominal_ms(const std::string& variant, double at_s) const {
  if (const std::string* const key = trace_key(variant))
    return timing_.trace_ms.at(*key).back() / gained(variant);
  return timing_.base_ms / gained(variant) * drift(at_s);
}

}  // namespace furlong::device::internal
