#pragma once
// The statistics of a race, with no device in sight: heats go in, eliminations and a verdict come out.
// The race (furlong/race) and the bench race-statistics drive this same code.
// The method, its sources and its calibration: docs/race-statistics.md.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace furlong::stats {

enum class Verdict { undecided, winner, dead_heat, out_of_budget };

/// How an interval is computed. `time_uniform` is the method; `uncorrected` (mean +- 1.96 s / sqrt(n), wrong
/// when looked at after every heat) is there for the bench, which must show that it fails.
enum class Interval { time_uniform, uncorrected };

/// Why a variant is out.
enum class Reason {
  in,           ///< it is not
  base,         ///< cannot beat base by the threshold
  leader,       ///< surely slower than VariantState::beaten_by
  indifferent,  ///< its interval is narrow and still straddles the threshold: a dead heat with base
  tie,          ///< tied with VariantState::beaten_by, which was preferred
  far_behind,   ///< so much slower in its first heats that no interval is needed
  unconfirmed,  ///< the fresh heats did not confirm it
  withdrawn,    ///< taken out by the caller
};

struct RaceRules {
  double threshold = 0.005;        ///< gain over base (rate ratio - 1) that a winner must have
  double win_error = 0.005;        ///< over all challengers: probability of a wrong winner
  double eliminate_error = 0.005;  ///< per variant
  double indifference = 0.001;     ///< half-width (log ratio) below which an undecided variant is a dead heat
  double tie_width = 0.002;        ///< all survivors within this of each other: any will do
  int minimum_heats = 0;           ///< heats before an interval may decide; 0: chosen by the calibration
  Interval interval = Interval::time_uniform;
};

/// One heat as measured: seconds (or any unit of cost) per variant; index 0 is base. base_again is the
/// second base window of the heat. A variant that was not timed is NaN.
struct Heat {
  std::vector<double> cost;
  double base_again = 0;
};

struct VariantState {
  bool out = false;      ///< eliminated (or withdrawn)
  int out_at_heat = -1;  ///< heat index of the elimination, -1 when still in
  Reason reason = Reason::in;
  std::size_t beaten_by = 0;  ///< the variant that put it out, for `leader` and `tie`; else 0
  std::string why_out;        ///< one sentence, empty while in; says "the leader", never a name
  int heats = 0;              ///< heats in which it was timed
  double gain = 0;            ///< estimated rate gain over base (ratio - 1)
  /// Confidence interval of the gain (ratio - 1) at 1 - eliminate_error; valid at every heat at once, and so
  /// the intersection of all so far: it may leave out `gain`, the newest mean. -1 and infinity while there is
  /// none yet.
  double low = -1, high = std::numeric_limits<double>::infinity();
};

/// Online and deterministic: the same heats give the same states. Not thread safe.
class Elimination {
 public:
  /// `variants` counts base (index 0). `names_complexity[i]` breaks ties: the smaller, the simpler.
  Elimination(std::size_t variants, RaceRules rules, std::vector<int> complexity = {});
  ~Elimination();
  Elimination(Elimination&&) noexcept;
  Elimination& operator=(Elimination&&) noexcept;

  /// Takes one heat; variants that are out must be NaN. Returns the indices newly eliminated.
  std::vector<std::size_t> add(const Heat& heat);
  /// Takes a variant out for another reason (its gate failed, its launch failed).
  void withdraw(std::size_t variant, std::string why);
  /// Fresh confirmation heats are needed before `winner` is final: true while they are being taken.
  bool confirming() const;
  /// Decided or not yet. When `winner`, leader() is the winner; a dead heat keeps base (or, when the
  /// survivors beat base but tie with each other, leader() is the simplest of them and the verdict
  /// is winner).
  Verdict verdict() const;
  /// The decision if the race must end now (budget): the best that the same rule allows, else base (0).
  std::size_t decide_now() const;
  /// Best estimate so far; 0 when none is ahead of base.
  std::size_t leader() const;
  const std::vector<VariantState>& states() const;
  std::size_t heats() const;
  /// Variants still timed in the next heat (base always).
  std::vector<std::size_t> survivors() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace furlong::stats
