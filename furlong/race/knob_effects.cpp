#include "furlong/race/knob_effects.h"

#include <cmath>

#include "furlong/stats/least_squares.h"

namespace furlong::race {
namespace {

constexpr std::size_t kFewestVariants = 3;

}  // namespace

std::vector<KnobEffect> knob_effects(const program::Instance& instance, const Outcome& outcome) {
  const std::vector<lattice::Knob>& knobs = instance.lattice().knobs;
  std::vector<std::vector<int>> points;
  std::vector<double> log_time;
  for (std::size_t i = 0; i < outcome.variants.size(); ++i) {
    const VariantOutcome& variant = outcome.variants[i];
    const double gain = i == 0 ? 0 : variant.gain;
    if (!variant.rate || !std::isfinite(gain) || gain <= -1) continue;
    points.emplace_back(variant.point.indices.begin(), variant.point.indices.end());
    log_time.push_back(-std::log1p(gain));
  }
  if (points.size() < kFewestVariants) return {};
  std::vector<int> defaults;
  for (const lattice::Knob& knob : knobs) defaults.push_back(static_cast<int>(knob.default_index));
  const auto fit = stats::main_effects(points, defaults, log_time);
  if (!fit) return {};
  std::vector<KnobEffect> effects;
  for (const stats::MainEffect& effect : fit->effects) {
    const lattice::Knob& knob = knobs[effect.knob];
    if (effect.value == defaults[effect.knob]) continue;
    effects.push_back({knob.name, knob.values[static_cast<std::size_t>(effect.value)].text(),
                       std::expm1(-effect.log_time), effect.standard_error * std::exp(-effect.log_time),
                       effect.samples});
  }
  return effects;
}

}  // namespace furlong::race
