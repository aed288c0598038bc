#pragma once
// Whether changes of one knob, or of a declared group of coupled knobs, lead from base to every valid point.

#include <cstdint>
#include <string>

#include "furlong/lattice/lattice.h"

namespace furlong::lattice::internal {

struct Reachability {
  std::uint64_t unreachable = 0;   ///< valid points of the first group of knobs that has such
  std::string example;             ///< name of one of them, the other groups at base
  std::vector<std::string> knobs;  ///< that group
};

/// Works group by group (knobs that constraints tie together): a point is reachable exactly when each
/// group's part is. Base must be valid. `exhausted` when a group has more than `max_points` valid parts,
/// or coupled knobs with too many assignments to try at each.
Result<Reachability> reachability(const Lattice& lattice, const Lookup& facts, std::uint64_t max_points);

}  // namespace furlong::lattice::internal
