#pragma once
// Emitters: makers of a program's text from a point, a problem and a device's facts, for programs whose
// variants differ by more than textual rewrites can say. A program file names one as `emitter` in place of a
// source (docs/formats/program.md). A new emitter is one folder and one line in emitter.cpp.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/lattice/value.h"
#include "furlong/program/program.h"

namespace furlong::program {

/// One kernel launch of an emitted text.
struct EmittedLaunch {
  std::string entry;
  std::array<std::uint64_t, 3> grid{1, 1, 1};   ///< blocks
  std::array<std::uint64_t, 3> block{1, 1, 1};  ///< threads
  std::uint64_t shared_bytes = 0;               ///< dynamic
  std::vector<std::string> arguments;           ///< names of the program's arguments, in the kernel's order
  /// Values of scalar arguments for this launch alone; the others have the program's.
  std::map<std::string, lattice::Value> scalars;
  /// Makes a layout of the inputs in scratch, when they are loaded: it runs before the others and is no part
  /// of what is timed. It may write scratch only, and its result must hold however often the others run.
  bool once = false;
};

struct Emitted {
  std::string source;
  std::vector<std::string> options;  ///< compiler options beside the program's
  std::vector<EmittedLaunch> launches;
  /// What was resolved or could not be done as asked, one sentence each: "precision auto is int64".
  std::vector<std::string> notes;
  bool fallback = false;  ///< one of the notes tells of something that could not be done as asked
};

/// What an emitter reads: the values of knobs, problem parameters, [let] names and device facts
/// ("device.sm"), by name. Names of one program are different, so that where a file has no such knob a
/// problem parameter of the name does for it.
using EmitNames = lattice::Lookup;

/// Immutable; thread safe.
class Emitter {
 public:
  virtual ~Emitter() = default;
  /// "linear.gemv"
  virtual std::string_view name() const = 0;
  virtual std::string_view language() const = 0;  ///< of its texts: "cuda"
  /// Names that emit() reads as knobs and as problem parameters (or names of [let]): a program file must have
  /// the latter, and may have the former (without one its default applies).
  virtual std::span<const std::string> knobs() const = 0;
  virtual std::span<const std::string> problem() const = 0;
  /// Text and launches. The same names give the same bytes. The text must not differ between a timed problem
  /// and the smaller one that a program's [check] makes of it: the gate runs the machine code that is timed.
  /// `invalid`: the point cannot be emitted for this problem (a size of 0, an unknown chip), with what and
  /// why.
  virtual Result<Emitted> emit(const EmitNames& names) const = 0;
  /// The reference that the gate compares with; shares no code with emit(). Null: none.
  virtual std::shared_ptr<const Recipe> recipe() const { return nullptr; }
};

/// The emitter of that name, of `others` first, then of those that are shipped; `invalid` names the nearest.
Result<std::shared_ptr<const Emitter>> find_emitter(std::string_view name, Emitters others = {});

}  // namespace furlong::program
