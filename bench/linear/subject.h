#pragma once
// One variant of a linear-algebra program on a card, with its inputs loaded and its layout made: what the
// bench times.

#include <memory>
#include <string>
#include <vector>

#include "bench/card/stage.h"
#include "furlong/race/internal/entrant.h"

namespace furlong::bench {

/// Inputs and buffers of one problem, shared by the variants that are timed on it one after another.
class Subject {
 public:
  /// `names` of the variants that will be prepared: their scratch decides the buffers' sizes.
  static Result<std::unique_ptr<Subject>> make(Stage& stage, const program::Instance& instance,
                                               const std::vector<std::string>& names);

  /// Compiles a variant, makes its layout and runs it once. `invalid` where it does not compile or is not
  /// valid here.
  Status prepare(const std::string& name);
  /// Milliseconds of one pass of the prepared variant's launches whose entry is not `without` (all of them
  /// when it is empty): the median of several windows, the first launch of each left out.
  Result<double> time_ms(std::string_view without = {});
  /// The prepared variant's outputs against the recipe's reference on the check's problem, not this one:
  /// `mismatch`.
  Status check(const std::string& name);

  device::Device& device() { return stage_.device(); }
  /// A buffer of the program, by the argument's name; null where it is none.
  device::Buffer* buffer(std::string_view argument);
  /// A buffer's bytes as the last launches left them.
  Result<Bytes> read(std::string_view argument);
  const program::Instance& instance() const { return instance_; }
  int registers() const { return registers_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Subject(Stage& stage, const program::Instance& instance) : stage_(stage), instance_(instance) {}
  Status load(const program::RunInputs& inputs);
  Result<race::Pipeline> launches(const lattice::Point& point, const program::RunInputs& inputs);

  Stage& stage_;
  const program::Instance& instance_;
  std::vector<lattice::Point> points_;
  program::RunInputs inputs_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;  // by argument; null: a scalar
  std::shared_ptr<device::Module> module_;
  std::vector<device::Launch> pipeline_;
  std::vector<std::string> notes_;
  int registers_ = 0;
};

/// A shipped linear-algebra program bound to the device; on a host CPU, in a smoke run, its CUDA text through
/// the shim.
Result<program::Instance> linear_instance(Stage& stage, const std::string& name,
                                          const std::vector<std::pair<std::string, lattice::Value>>& problem);

/// Median time of a pipeline: batches long enough to be measured, windows enough to be believed.
Result<double> median_ms(device::Device& device, std::span<const device::Launch> pipeline, bool smoke);

Status gemv_section(Bench& bench, Stage& stage);
Status gemm_section(Bench& bench, Stage& stage);
Status points_section(Bench& bench, Stage& stage);

}  // namespace furlong::bench
