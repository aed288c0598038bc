#pragma once
// What the maps of a lattice say of a value, in text and in Markdown.

#include <string>
#include <vector>

#include "furlong/lattice/lattice.h"

namespace furlong::lattice::internal {

/// The default's text; empty where the index names none.
std::string default_text(const Knob& knob);
/// Tag, "lossy", "by name only": what stands in parentheses behind a value.
std::vector<std::string> value_notes(const Knob& knob, std::size_t value);

}  // namespace furlong::lattice::internal
