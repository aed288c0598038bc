#pragma once
// Everything that decides whether a point is valid: the constraints, and each knob's `requires` as the
// condition "at its default, or the precondition holds".

#include <memory>
#include <string>
#include <vector>

#include "furlong/lattice/internal/tree.h"
#include "furlong/lattice/lattice.h"

namespace furlong::lattice::internal {

struct Condition {
  std::shared_ptr<const Expression::Tree> tree;
  std::string name;                 ///< "constraint 'a < b'" or "knob 'k' requires 'x'", with its line
  std::string reason;               ///< as in Constraint
  const Knob* requiring = nullptr;  ///< of a `requires`
};

/// `invalid` when a `requires` does not parse. The conditions live as long as the lattice.
Result<std::vector<Condition>> conditions(const Lattice& lattice);
Condition condition_of(const Constraint& constraint);
/// nullopt when the knob requires nothing.
Result<std::optional<Condition>> condition_of(const Knob& knob);

}  // namespace furlong::lattice::internal
