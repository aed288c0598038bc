#pragma once
// One heat: every variant still in is timed for one window, in shuffled order, base twice.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "furlong/race/internal/entrant.h"
#include "furlong/race/internal/gate.h"

namespace furlong::race {

/// How one window is timed.
struct WindowPlan {
  int batch = 1;    ///< pipelines of one sample: more than one for kernels under 50 µs
  int repeats = 4;  ///< samples, the first of which is dropped
};

/// The window of a variant that takes `estimate_ms` a pipeline: max(window_ms, 3 samples) after the first. A
/// kernel under 50 µs is timed in batches of about half a millisecond, since alone it scatters by tens of
/// percent; a variant about as fast as base uses base's batch, so that both pay the same for the gaps between
/// samples. `batches` is false for cold caches, where each launch is flushed before. Pure.
WindowPlan plan_window(double estimate_ms, double base_estimate_ms, double window_ms, bool batches);

/// Median of the samples after the first; NaN for fewer than two. The dropped first is the caller's.
double window_value(std::span<const double> samples_ms);

/// Heats of one race. One thread.
class Sampler {
 public:
  /// A variant failed in its window.
  struct Failure {
    Entrant* entrant = nullptr;
    Error error;
  };
  struct Heat {
    HeatRecord record;
    std::optional<Failure> failure;  ///< the heat is dropped then
  };

  /// `timed` are the inputs on the device (Gate::load_timed).
  Sampler(const Context& context, const Options& options, Buffers& buffers, const program::RunInputs& timed,
          std::size_t variants);
  /// Allocates what cold caches need. `exhausted` when there is no room.
  Status prepare();

  /// Times a first pipeline or two of each and sets its estimate. A failure is given to `failed` (see Gate).
  Status estimate(std::span<Entrant* const> entrants,
                  const std::function<Status(Entrant&, const Error&)>& failed);

  /// `entrants` by variant index, null for those that are out; base is first. `number` counts all heats of
  /// the race. `timeout` when stopped between two windows.
  Result<Heat> heat(std::span<Entrant* const> entrants, std::uint64_t number);

  /// One window of one variant: its samples, the first left out. Holds the device.
  Result<std::vector<double>> window(Entrant& entrant, const WindowPlan& plan);
  /// The same for a caller that holds the device already, has called lay_out() and counts the pause itself.
  Result<std::vector<double>> window_while_held(Entrant& entrant, const WindowPlan& plan);

  /// Runs what a variant runs once when its inputs are loaded, unless nobody has touched scratch since it was
  /// timed last. For a caller that has just begun to hold the device.
  Status lay_out(const Entrant& entrant);

  /// What a window of a variant should take by its estimate.
  double window_ms(const Entrant& entrant) const;

  double paused_ms() const { return paused_ms_; }
  double* pause_counter() { return &paused_ms_; }

 private:
  double hand_limit_s(const Entrant& entrant, const WindowPlan& plan) const;
  Result<std::vector<double>> undisturbed_window(Entrant& entrant, const WindowPlan& plan, bool& descheduled);

  const Context& context_;
  const Options& options_;
  Buffers& buffers_;
  const program::RunInputs& timed_;
  std::size_t variants_;
  std::size_t inout_bytes_;
  std::unique_ptr<device::Buffer> flush_;
  /// Who used scratch last, and Buffers::scratch_epoch() then.
  std::pair<const Entrant*, std::uint64_t> scratch_user_{nullptr, 0};
  double base_estimate_ms_ = 1;
  double paused_ms_ = 0;
  std::optional<double> first_heat_ms_;
};

}  // namespace furlong::race
