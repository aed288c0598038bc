#pragma once
// The gate: a variant's outputs against the reference, on the fixed vectors, on fresh random inputs and at
// the size that is timed; with outputs poisoned before and guard zones checked after.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "furlong/race/buffers.h"
#include "furlong/race/internal/entrant.h"
#include "furlong/race/reference.h"

namespace furlong::race {

/// Where base's output is the reference it must stand over this many work items: elements of the largest
/// argument, over all sets of fresh inputs.
inline constexpr std::size_t base_reference_items = 1 << 16;

/// One thread at a time; holds the device (Context::acquire) for one run of one variant at a time.
class Gate {
 public:
  struct Asked {
    Entrant* base = nullptr;
    std::span<Entrant* const> entrants;  ///< base among them or not; those that are out are passed over
    std::uint64_t seed = 1;              ///< of the fresh inputs and of the poison
    bool timed = true;                   ///< also at the timed size
    /// A variant failed: takes it out. Its Error ends the gate (the device is lost, or the variant was base).
    std::function<Status(Entrant&, const Error&)> failed;
    /// Before each run of a variant; its Error ends the gate.
    std::function<Status(const Entrant&)> doing;
    double* held_ms = nullptr;  ///< grows by the time that the device was held
    /// When the gates must be done, by Context::clock. What would end later, as base's gate was timed, is
    /// given to `unfit` before it runs: it takes the variant out. Base is never given. None: no limit.
    std::optional<double> until_ms;
    std::function<void(Entrant&)> unfit;
  };

  /// `points`: of all variants (sizes of scratch). What is passed must outlive the gate.
  Gate(const program::Instance& instance, const Context& context, std::vector<lattice::Point> points);

  /// Sizes that the buffers need: by argument the largest of all cases.
  Result<std::vector<std::size_t>> room(std::uint64_t seed);
  /// Compiles or loads the reference function. Before run().
  Status prepare(Buffers& buffers);

  /// Where base's output is the reference base runs first, twice, on other poison: outputs that differ are
  /// not all written, or not the same each time. Sets `gated` and the error ratio of those that pass.
  Status run(const Asked& asked);

  /// What another gate of a variant would take, by its last one: its runs and the reference's.
  double cost_ms(const Entrant& entrant) const;

  /// The reference in words, after a run: "the recipe's reference and 4 vectors; at the timed size base's
  /// output".
  std::string words() const;
  /// Fresh inputs on the check's problem, made once a seed (a recipe's reference takes its time).
  Result<const program::RunInputs*> check_inputs(std::uint64_t seed);
  /// Inputs of the timed problem, made once a seed.
  Result<const program::RunInputs*> timed_inputs(std::uint64_t seed);
  /// The timed inputs in hand, of whatever seed; null before the first.
  const program::RunInputs* any_timed_inputs() const { return timed_ ? &*timed_ : nullptr; }
  /// Brings the timed problem's inputs to the device, for heats.
  Status load_timed(std::uint64_t seed);

 private:
  enum class Kind { vector, fresh, timed };
  struct Case {
    Kind kind = Kind::vector;
    const program::RunInputs* inputs = nullptr;
    std::uint64_t id = 0;
    std::vector<Bytes> expected;
    std::vector<bool> from_base;  // by argument
  };

  /// What one case took when base was gated.
  struct CaseCost {
    double expect_ms = 0;  // the inputs and the reference's outputs
    double base_ms = 0;    // one run of base
  };

  Status run_case(const Asked& asked, Kind kind, const program::RunInputs& inputs, std::uint64_t id);
  Status run_entrant(const Asked& asked, Entrant& entrant, const Case& current);
  double ahead_ms(const Entrant& entrant, std::size_t from_case) const;
  void drop_unfit(const Asked& asked, std::size_t done, bool expected);
  Status expect(const Asked& asked, Case& current);
  Status expect_from_base(const Asked& asked, Case& current, const std::vector<std::size_t>& missing);
  Status launch(Entrant& entrant, const Case& current, const std::vector<Bytes>& known);
  Status check(Entrant& entrant, const Case& current);
  Status compare(const lattice::Point& point, std::size_t argument, const Case& current, double& error_ratio);
  bool is_output(std::size_t argument) const;
  std::size_t work_items(const program::RunInputs& inputs) const;
  std::size_t rounds(const program::RunInputs& checked) const;

  const program::Instance& instance_;
  const Context& context_;
  std::vector<lattice::Point> points_;
  Buffers* buffers_ = nullptr;
  std::optional<Reference> reference_;
  Random poison_{0};
  std::uint64_t next_id_ = 0;
  std::optional<program::RunInputs> checked_;
  std::uint64_t checked_seed_ = 0, checked_id_ = 0;
  std::optional<program::RunInputs> timed_;
  std::uint64_t timed_seed_ = 0, timed_id_ = 0;
  std::vector<CaseCost> costs_;      // by case, in the order of run()
  std::size_t case_ = 0;             // in hand
  double case_from_ms_ = 0;          // when the one before ended
  std::size_t items_from_base_ = 0;  // of fresh inputs
  bool timed_from_base_ = false;
};

}  // namespace furlong::race
