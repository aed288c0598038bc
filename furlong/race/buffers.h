#pragma once
// One set of device buffers for all variants of a race: what differs between two variants is then never where
// their memory lies. Every buffer has a guard zone before and after, which a correct kernel leaves alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/race/race.h"

namespace furlong::race {

/// Buffers of one program on one device; must go before the device. One thread at a time, and only while the
/// device is held. Errors of the device are passed on; `mismatch` means that a kernel wrote where it must
/// not.
class Buffers {
 public:
  /// Of each guard zone. The data starts here, so it is aligned as the zone is: 4096.
  static constexpr std::size_t guard_bytes = 4096;

  /// Room for bytes[i] of every argument that is a buffer (0 for scalars), the largest of all cases. Guard
  /// patterns and the places of spot checks follow from `seed`. `exhausted` names the argument.
  static Result<std::unique_ptr<Buffers>> allocate(device::Device& device,
                                                   std::shared_ptr<const program::Program> program,
                                                   std::span<const std::size_t> bytes, std::uint64_t seed);

  /// Whether a race of this program with these sizes can use them again.
  bool fits(const device::Device& device, const program::Program& program,
            std::span<const std::size_t> bytes) const;

  /// As allocate(), but with the dataset of `other`, at its address, where both programs' recipes build the
  /// same one on the same device. Both may then launch; whichever gates after the other must forget() first.
  static Result<std::unique_ptr<Buffers>> allocate_beside(const Buffers& other, device::Device& device,
                                                          std::shared_ptr<const program::Program> program,
                                                          std::span<const std::size_t> bytes,
                                                          std::uint64_t seed);

  /// Builds the program's dataset and uploads it; nothing when it is there already or there is none. Holds
  /// the device for the upload only: call it while it is not held. `timeout` when stopped, `invalid` when the
  /// program has a dataset and nobody to build it.
  Status load_dataset(const Context& context);

  /// Uploads the inputs of a case and paints the guards, unless that case is loaded and whole. `id` tells
  /// cases apart; `inout` arguments are uploaded every time.
  Status load(const program::RunInputs& inputs, std::uint64_t id);
  /// Launches outside a case have been here: the next load() uploads and paints everything.
  void forget();
  /// Grows whenever a layout of the inputs that a variant made in scratch may no longer hold: load() brought
  /// other inputs, poison() wrote there, or launches that forget() tells of.
  std::uint64_t scratch_epoch() const { return scratch_epoch_; }
  /// Uploads the inout arguments again.
  Status restore(const program::RunInputs& inputs);
  /// Bytes of inout arguments in a case.
  static std::size_t inout_bytes(const program::Program& program, const program::RunInputs& inputs);

  /// Fills outputs and scratch so that what a kernel does not write cannot pass: where `expected` is known
  /// every byte of the poison differs from it (large outputs: at both ends), floating outputs of a tolerance
  /// check are NaN, and all else is a byte that changes from call to call.
  Status poison(const program::RunInputs& inputs, const std::vector<Bytes>& expected, Random& random);

  /// `mismatch`: "it wrote past the end of 'out' (byte 3 of the guard zone)".
  Status check_guards(const program::RunInputs& inputs);
  /// `mismatch`: "it wrote to its input 'x' (byte 12)". Whole inputs up to 16 MiB; beyond, and the dataset:
  /// both ends and places that change from call to call.
  Status check_inputs(const program::RunInputs& inputs, Random& random);

  /// Bytes of an argument as they are now.
  Result<Bytes> read(std::size_t argument, const program::RunInputs& inputs);
  /// Whether they equal `want`, without holding both.
  Result<bool> equals(std::size_t argument, ByteView want);

  /// For a launch. Not for scalars.
  device::BufferArgument argument(std::size_t index) const;
  const program::Program& program() const { return *program_; }
  /// Of all buffers, guard zones included.
  std::uint64_t total_bytes() const;

 private:
  struct Slot {
    std::shared_ptr<device::Buffer> buffer;  // null: a scalar. Shared: the dataset of several Buffers
    std::size_t room = 0;
    std::size_t painted_at = 0;  // size whose back guard is painted; SIZE_MAX: none is
  };
  /// Bytes of the dataset remembered for spot checks.
  struct Sample {
    std::size_t argument = 0, offset = 0;
    Bytes bytes;
  };

  Buffers(device::Device& device, std::shared_ptr<const program::Program> program, std::uint64_t seed);
  static Result<std::unique_ptr<Buffers>> make(device::Device& device,
                                               std::shared_ptr<const program::Program> program,
                                               std::span<const std::size_t> bytes, std::uint64_t seed,
                                               const Buffers* beside);
  /// The slot of its dataset, when it is loaded and `program` reads the same one with room for `bytes`.
  const Slot* dataset_for(const device::Device& device, const program::Program& program,
                          std::size_t bytes) const;
  Status paint(std::size_t argument, std::size_t size);
  Status check_zone(std::size_t argument, std::size_t offset, bool after);
  Status check_piece(std::size_t argument, std::size_t offset, ByteView want);
  void remember(std::size_t argument, ByteView dataset);

  device::Device* device_;
  std::shared_ptr<const program::Program> program_;
  std::vector<Slot> slots_;
  Bytes guard_;  // the pattern of a zone
  std::vector<Sample> samples_;
  Bytes scratch_;             // for reading back piece by piece
  std::uint64_t loaded_ = 0;  // id of the case whose inputs are there; 0: none
  std::uint64_t scratch_epoch_ = 0;
  bool dataset_loaded_ = false;
  std::uint64_t seed_;
};

}  // namespace furlong::race
