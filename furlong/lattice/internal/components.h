#pragma once
// The groups of knobs that constraints tie together, ready for the diagram.

#include <vector>

#include "furlong/lattice/internal/diagram.h"
#include "furlong/lattice/lattice.h"

namespace furlong::lattice::internal {

struct Component {
  std::vector<std::uint32_t> knobs;  ///< indices into the lattice, ascending
  Group group;
};

/// In the order of their first knobs. Points into the lattice, which must outlive it. A condition on facts
/// alone joins the first group (a group without knobs when there are none). `invalid` names a condition's
/// name that is neither a knob nor a fact, and a knob without values.
Result<std::vector<Component>> split_components(const Lattice& lattice, const Lookup& facts);

}  // namespace furlong::lattice::internal
