#pragma once
// One race in hand: what its steps share. race.cpp has the order of the steps, the other files one step each.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "furlong/race/internal/contest.h"
#include "furlong/race/internal/entrant.h"
#include "furlong/race/internal/gate.h"
#include "furlong/race/internal/sampler.h"
#include "furlong/race/race.h"

namespace furlong::race {

/// What earlier attempts at the same race left: they ended with the device.
struct Earlier {
  std::map<std::size_t, std::string> lost;  ///< who took the device with it, by variant: why
  double paused_ms = 0, held_ms = 0;
  std::optional<double> start_ms, base_ready_ms;
  std::vector<std::string> notes;
};

class Race {
 public:
  Race(const program::Instance& instance, std::span<const lattice::Point> points, const Options& options,
       const Context& context, const Earlier& earlier);
  Result<Outcome> run();
  /// As race::check().
  Result<Outcome> check(std::size_t entrants);
  /// Whether the race ended because a variant took the device; if so `earlier` learns of it.
  bool lost_device(Earlier& earlier, Fallen& took) const;

 private:
  // Before the heats (race.cpp).
  Status check_request() const;
  Status enter();
  Status fit_check();
  Status describe_all();
  Status take_out_fallen();
  void tell_fallen();
  Status look_up_quarantine();
  Status compile();
  Status try_unknown();
  Status set_up_buffers();
  Status gates();
  Status aim();

  // Timing (heats.cpp, classic.cpp, energy.cpp).
  Status heats();
  Status base_alone();
  Status classic();
  Status classic_round(std::vector<double>& cost, HeatRecord& record);
  Status energy();
  Result<bool> measure_energy(Entrant& entrant);
  Result<std::optional<stats::Heat>> take_heat(const std::vector<std::size_t>& places,
                                               const stats::Elimination& state);
  Result<std::optional<stats::Heat>> take_energy(const std::vector<Entrant*>& finalists,
                                                 const std::vector<std::size_t>& places);
  std::optional<std::string> why_end(const stats::Elimination& state);
  std::optional<std::string> why_end_before(double next_pause_ms, double next_ms) const;
  std::optional<std::string> why_end_at_cap(double next_pause_ms) const;
  double first_heat_ms() const;
  double second_gate_ms() const;
  Status estimate();
  void over_budget(Entrant& entrant, Exit exit, const char* why);
  Result<bool> second_gate(Entrant& winner);
  void take_result(const ContestResult& result, const std::vector<Entrant*>& entrants);

  // Failures (faults.cpp).
  /// A variant failed while it ran: out, quarantined when it deserves it. The Error when the race cannot go
  /// on.
  Status on_failure(Entrant& entrant, const Error& error, std::string_view doing);
  bool device_answers();
  double paused_ms() const { return earlier_.paused_ms + (sampler_ ? sampler_->paused_ms() : 0); }
  void remember(const Entrant& entrant, bool good, const std::string& why, const std::string& evidence);

  // The end (outcome.cpp).
  void rates();
  void share_with_duplicates();
  void conclude();
  std::string sentence() const;

  void progress(Phase phase, std::size_t done, std::size_t total, const std::string& doing,
                bool always = false);
  double now_ms() const { return context_.clock->now_ms(); }
  /// 0 until base is ready.
  double since_base_s() const { return base_ready_ms_ ? 1e-3 * (now_ms() - *base_ready_ms_) : 0; }
  double left_s() const { return std::max(options_.budget_s - since_base_s(), 0.0); }
  std::vector<Entrant*> everyone();
  std::size_t challengers() const;
  Status stopped() const;
  std::string evidence() const;

  const program::Instance& instance_;
  std::span<const lattice::Point> points_;
  Options options_;
  const Context& context_;
  const Earlier& earlier_;
  std::optional<std::size_t> took_device_;
  std::string took_why_;  // in the quarantine's words
  Outcome outcome_;
  std::vector<Entrant> entrants_;
  std::optional<Gate> gate_;
  std::shared_ptr<Buffers> buffers_;
  std::optional<Sampler> sampler_;
  double start_ms_ = 0, held_ms_ = 0;
  std::optional<double> base_ready_ms_;  // by the clock, of the first attempt
  double first_ms_ = 0;                  // of the heats
  double last_heat_pause_ms_ = 0, last_heat_ms_ = 0;
  int dropped_in_a_row_ = 0;
  int over_budget_ = 0;  // variants that were left out for want of time
  std::uint64_t heat_number_ = 0;
  double progress_ms_ = -1e9;
  Progress progress_;
  bool energy_stage_ = false;
  mutable std::string evidence_;
};

}  // namespace furlong::race
