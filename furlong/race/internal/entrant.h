#pragma once
// What a race knows of one variant while it runs, and how its launches are made.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "furlong/race/buffers.h"
#include "furlong/race/compile_request.h"
#include "furlong/race/race.h"

namespace furlong::race {

/// The launches of a variant on certain inputs.
struct Pipeline {
  /// Make its layout of the inputs in scratch: run after the inputs are loaded and scratch is poisoned, and
  /// again after anybody else wrote to scratch. Not timed.
  std::vector<device::Launch> once;
  std::vector<device::Launch> launches;
};

/// Enqueues the launches in order.
Status launch_all(device::Device& device, std::span<const device::Launch> launches);

struct Entrant {
  std::size_t index = 0;  ///< into Outcome::variants
  lattice::Point point;
  program::VariantPlan plan;
  std::vector<std::vector<program::LaunchPlan>> pipelines;  ///< on each kind of inputs: what will be launched
  std::string launch_key;   ///< digest of those launches and of the scalars: with the code, all that runs
  std::string key;          ///< digest of source, options and launch_key: for the quarantine
  bool known_good = false;  ///< passed a trial in an earlier race
  bool late = false;        ///< not compiled within the race's budget
  std::shared_ptr<device::Module> module;
  VariantOutcome* outcome = nullptr;
  Pipeline timed;                     ///< what heats time
  double estimate_ms = 0;             ///< one pipeline
  double gate_ms = 0;                 ///< of its runs in the last gate, by the race's clock
  double gate_base_ms = 0;            ///< of base's runs on the same cases
  std::vector<double> energy, power;  ///< J per unit and W, by energy window

  const std::string& name() const { return plan.name; }
  bool in() const { return outcome->exit == Exit::none; }
};

/// Fills name, launches of the given cases and both keys. `invalid`: the point does not fit the problem.
Status describe(const program::Instance& instance, Entrant& entrant,
                std::span<const program::RunInputs* const> cases);

/// The pipeline of `point` on `inputs` with a module and the buffers: `buffer` gives the one of an argument,
/// by its index in the program.
Result<Pipeline> make_launches(const program::Instance& instance, const lattice::Point& point,
                               device::Module& module,
                               const std::function<device::BufferArgument(std::size_t)>& buffer,
                               const program::RunInputs& inputs);
Result<Pipeline> make_launches(const program::Instance& instance, const lattice::Point& point,
                               device::Module& module, const Buffers& buffers,
                               const program::RunInputs& inputs);

/// Bytes of the device buffers that a variant needs on these inputs (its own scratch).
std::uint64_t buffer_bytes(const program::Instance& instance, const lattice::Point& point,
                           const program::RunInputs& inputs);

/// How a failure on the device is read.
enum class Fault {
  wrong,    ///< the output or a guard zone is wrong
  refused,  ///< the launch does not fit the device, or memory ran out
  hang,     ///< it did not end
  trap,     ///< the device or its context is lost, or failed in an unknown way
};
Fault fault_of(const Error& error);
/// "hang: …", "trap: …" for the quarantine and the report.
std::string fault_words(const Error& error);

}  // namespace furlong::race
