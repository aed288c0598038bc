#pragma once
// Races without a device: windows are drawn from recorded traces or from synthetic noise, the real
// decision code of furlong/stats decides. Everything replays from a seed. Used by race-statistics.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/trace.h"
#include "furlong/base/random.h"

namespace furlong::bench {

/// How the race is decided. The last three are deliberately bad.
enum class Rule { race, classic, uncorrected, first_launch, unshuffled };
std::string_view rule_name(Rule rule);

/// Shapes of synthetic noise; docs/race-statistics.md says what each does to a window.
enum class Shape { white, correlated, ramp, steps, tails, bad_base, uneven };
std::string_view shape_name(Shape shape);

/// One row of the bench: where the windows come from.
struct Scene {
  std::string name;
  const Trace* trace = nullptr;  ///< recorded; else synthetic:
  Shape shape = Shape::white;
  double noise = 0;  ///< standard deviation of one window's log cost
};

/// What the true gains over base (ratio - 1) of the 16 challengers are.
enum class Field { none_better, at_threshold, one_better, three_tied, mixed };
std::string_view field_name(Field field);

constexpr std::size_t kVariants = 17;  // base and 16 challengers

struct RaceOutcome {
  std::size_t winner = 0;
  bool switched = false;  ///< not base
  bool found = false;     ///< the winner is one of the best within 0.1%
  bool decided = true;    ///< before the pause cap
  double regret = 0;      ///< what the choice loses on the best beyond the threshold, ratio - 1
  double paused_ms = 0;
  int intervals = 0;  ///< challengers with an interval
  int misses = 0;     ///< of those, intervals that at some heat left out the true gain
};

/// One race; the same arguments give the same outcome. Thread safe for a shared Scene.
RaceOutcome simulate(const Scene& scene, Field field, Rule rule, std::uint64_t seed);

}  // namespace furlong::bench
