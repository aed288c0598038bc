#pragma once
// What a host program calls: a program bound to its problem, and a device → the variant that a race chose
// there, compiled, gated and ready to launch on the caller's own buffers. The choice is kept in the user's
// cache (docs/formats/raced-kernel.md) for the next start on the same card, driver and compiler, so that only
// the first one races. furlong/kernel/linear.h asks for matrix products by shape alone.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/os/file.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/race/race.h"
#include "furlong/record/record.h"

namespace furlong::kernel {

class RacedKernel;

struct Options {
  std::string variants = "catalogue";  ///< to race, as Instance::select reads them
  std::vector<std::string> allow;      ///< knobs whose lossy and restricted values may be raced
  /// False: base is what the others are compared with, and the best of them is chosen even where it is
  /// slower.
  bool base_may_win = true;
  /// Problem parameters that are others in the launches than in the race: a race may multiply copies in turn,
  /// so that no cache holds them, where a call has one. They must not change the text. The choice is gated on
  /// this problem and kept for it alone.
  std::vector<std::pair<std::string, lattice::Value>> serve;
  race::Options race_options;  ///< of a race that is needed; its seed is also the gate's
  /// `device`, `kept` and `reopen` are not read; a null clock is the system's. Without a trial command a
  /// variant that hangs or traps takes the process with it.
  race::Context context;
  bool use_kept = true;  ///< false: race now, and keep the new choice
  /// False: the choice is not kept, as for texts that never come again, whose choices would only fill the
  /// folder.
  bool keep = true;
  /// A kept choice passes the gate once more before it is given out. That gate has no budget: it takes what
  /// base and the choice take, and ends early by the context's stop alone.
  bool gate_again = true;
  std::filesystem::path folder;  ///< of kept choices; empty: cache_folder()/kernels
  Files* files = nullptr;        ///< null: the system's
  /// Told of base once a race has gated it, before the others are gated and timed: it may serve meanwhile.
  /// Called on the caller's thread while the device is not held, where base may win and `serve` is empty.
  /// Null: nobody asks. What is copied of it is the caller's, and must be given up while nobody else uses the
  /// device.
  std::function<void(const RacedKernel&)> base_ready;
};

/// An argument that the chosen variant's launches read or write.
struct Argument {
  std::string name;
  program::ArgumentKind kind = program::ArgumentKind::buffer;
  program::Direction direction = program::Direction::in;
  program::ElementType type = program::ElementType::f32;
  std::size_t bytes = 0;  ///< that a buffer needs; a scalar's own size
};

/// What a caller binds, by argument name. A value type; the buffers are the caller's and outlive the Bound
/// that is made of it.
class Arguments {
 public:
  /// `offset` in bytes: a multiple of device::buffer_offset_step.
  Arguments& buffer(std::string name, device::Buffer& buffer, std::size_t offset = 0) {
    buffers_[std::move(name)] = {&buffer, offset};
    return *this;
  }
  Arguments& scalar(std::string name, lattice::Value value) {
    scalars_[std::move(name)] = std::move(value);
    return *this;
  }
  const std::map<std::string, device::BufferArgument>& buffers() const { return buffers_; }
  const std::map<std::string, lattice::Value>& scalars() const { return scalars_; }

 private:
  std::map<std::string, device::BufferArgument> buffers_;
  std::map<std::string, lattice::Value> scalars_;
};

/// A kernel with its arguments. Both calls enqueue; Device::finish() waits, and tells of what failed
/// meanwhile. On the device's thread; must go before the device.
class Bound {
 public:
  /// Makes the variant's layout of the inputs in scratch, for variants that have one. To be called before the
  /// first launch, and again when an input that it reads has changed: `prepare_reads()` names them.
  Status prepare();
  /// One call of the kernel. `invalid`: there is something to prepare, and prepare() did not succeed since
  /// bind().
  Status launch();
  /// What launch() enqueues, for device::Device::time; after prepare(), which is not checked there.
  std::span<const device::Launch> launches() const { return launches_; }
  /// Inputs that prepare() reads: constant between its calls.
  const std::vector<std::string>& prepare_reads() const { return prepare_reads_; }

 private:
  friend class RacedKernel;
  Bound() = default;
  Status enqueue(std::span<const device::Launch> launches);

  device::Device* device_ = nullptr;
  std::shared_ptr<device::Module> module_;
  std::vector<std::unique_ptr<device::Buffer>> scratch_;
  std::vector<device::Launch> once_, launches_;
  std::vector<std::string> prepare_reads_;
  bool prepared_ = false;
};

/// Immutable; bind() on the device's thread. Copies share the module; all must go before the device.
class RacedKernel {
 public:
  const std::string& variant() const { return plan_.name; }
  /// One sentence: what it beat, by how much, or why base stays.
  const std::string& why() const { return why_; }
  bool from_cache() const { return from_cache_; }
  /// Where the choice is kept, or would be.
  const std::filesystem::path& file() const { return file_; }
  const record::RaceRecord& evidence() const { return evidence_; }
  /// What an emitter resolved or could not do as asked, and what happened to the kept choice.
  const std::vector<std::string>& notes() const { return notes_; }

  /// With the problem of the launches.
  const program::Instance& instance() const { return *instance_; }
  const program::VariantPlan& plan() const { return plan_; }
  /// Those that run once come first.
  std::span<const program::LaunchPlan> launches() const { return launches_; }
  /// In the program's order.
  std::vector<Argument> arguments() const;

  /// Checks and binds. Scratch that the caller does not bind is allocated here and belongs to the Bound.
  /// Scalars that follow from the problem need not be given. `invalid` names an unknown, missing or too small
  /// buffer, an offset that is no multiple of device::buffer_offset_step, a result that overlaps another
  /// argument, a scalar that does not fit its type or is another than the problem's; `exhausted`: no memory
  /// for scratch.
  Result<Bound> bind(const Arguments& given) const;

 private:
  friend class Maker;
  RacedKernel() = default;
  std::vector<bool> used() const;
  Status check_names(const Arguments& given) const;
  Result<Bytes> scalar(std::size_t index, const Arguments& given) const;
  Result<device::BufferArgument> buffer(std::size_t index, const Arguments& given, Bound& bound) const;
  Status check_overlaps(std::span<const device::BufferArgument> bound) const;

  device::Device* device_ = nullptr;
  std::shared_ptr<const program::Instance> instance_;
  program::RunInputs sizes_;
  program::VariantPlan plan_;
  std::vector<program::LaunchPlan> launches_;
  std::shared_ptr<device::Module> module_;
  std::string why_;
  bool from_cache_ = false;
  std::filesystem::path file_;
  record::RaceRecord evidence_;
  std::vector<std::string> notes_;
};

/// The kernel for the device: of the kept choice where there is one for this program, problem (raced and
/// served), card, driver, compiler, library version and choice of variants; else of a race, whose choice is
/// then kept. A race that ended without a decision is kept for callers with no larger budget. `instance` is
/// bound to the device's facts (expression_facts of furlong/select/select.h).
///
/// Kept choices that cannot be used (torn, another's, of another version, a variant that fails its gate now)
/// are as good as none, and a folder that cannot be written costs the next start a race: both are warnings in
/// the log, and in notes(). Several processes at once each race, and the last one's choice stays.
///
/// Errors: those of Instance::select and race::run; `exhausted` where the race's buffers are larger than the
/// device; `mismatch` where the choice fails its gate on the problem of the launches, or base_may_win is
/// false and nobody else passed; `timeout` where base_may_win is false and the budget ended before anybody
/// else was timed. On the device's thread; where the context has acquire and release, on any thread beside
/// others that use the device between the same two: all that is done on it here, but compiling, is between
/// them.
Result<RacedKernel> raced_kernel(device::Device& device, const program::Instance& instance,
                                 const Options& options = {});

}  // namespace furlong::kernel
