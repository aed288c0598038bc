#pragma once
// Reader of T1 files, the tuning community's description of a tunable kernel (the benchmark hub of the
// AutoTuning Association publishes such files): parameters, values and conditions become a lattice.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/lattice/lattice.h"

namespace furlong::interop {

/// A value type.
struct T1Problem {
  std::string name;      ///< General.BenchmarkName
  std::string language;  ///< KernelSpecification.Language in lower case: "cuda", "opencl"
  std::string kernel_name;
  std::string kernel_file;
  std::vector<std::string> compiler_options;
  std::vector<std::int64_t> problem_size;
  /// Parameters with several values are knobs, in the file's order. Tags are name_value. The knobs have no
  /// sentences: lint them as a user's file.
  lattice::Lattice lattice;
  /// Parameters with one value: no choice, so no knobs. Constraints name them as facts.
  std::vector<std::pair<std::string, lattice::Value>> fixed;
  std::vector<std::string> parameters;  ///< all names, in the file's order
  /// What the file says and the lattice cannot: a default that is no value, a default point that the
  /// conditions exclude. Then base is the valid point that differs from it in the fewest knobs.
  std::vector<std::string> notes;

  /// The fixed values, for Space::build and lint. Independent of this object's life.
  lattice::Lookup facts() const;
};

/// `invalid` names the file (`name`), the member and, in expressions, the column. Members that do not
/// concern the lattice may be missing or of any form.
Result<T1Problem> read_t1(std::string_view text, std::string_view name);

}  // namespace furlong::interop
