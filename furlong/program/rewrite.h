#pragma once
// Textual rewrites by exact anchors.

#include <span>
#include <string>
#include <string_view>

#include "furlong/program/program.h"

namespace furlong::program {

/// The text with every rewrite applied. All anchors are counted in `text` as it stands, so the order of the
/// rewrites does not matter and none can meet what another one wrote. `invalid` when an anchor is not found
/// ("anchor not found: 'for (int i'"), occurs another number of times than expected ("anchor 'x' occurs 2
/// times, expected 1"; overlapping occurrences count), or when two rewrites edit the same characters. Thread
/// safe.
Result<std::string> apply_rewrites(std::string_view text, std::span<const Rewrite> rewrites);

}  // namespace furlong::program
