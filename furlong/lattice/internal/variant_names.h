#pragma once
#include <string>

#include "furlong/lattice/lattice.h"

namespace furlong::lattice::internal {

/// A name that two points share, or empty: the proof that every name parses back to its point. All
/// points are considered, also those that constraints exclude.
std::string ambiguous_name(const Lattice& lattice);

}  // namespace furlong::lattice::internal
