#pragma once
// How back ends write down what a platform tells of a card, so that one card has one name through all of
// them.

#include <cstdint>
#include <string>
#include <string_view>

namespace furlong::device {

/// The marketing name as a label: runs of spaces become one underscore. "unknown" for an empty one.
std::string label_of(std::string_view name);
/// To whole GiB, at least one: what a system or a driver keeps for itself moves by a few MiB from version to
/// version, and the silicon does not.
std::uint64_t rounded_memory(std::uint64_t bytes);

}  // namespace furlong::device
