#pragma once
// The lottery as a Recipe: its dataset and its reference, for the gate and for light verification of finds.

#include <memory>

#include "furlong/program/lottery/specification.h"
#include "furlong/program/program.h"

namespace furlong::program::lottery {

/// Order of the program's arguments, in every language.
enum Argument : std::size_t { kDataset, kStart, kCount, kTarget, kHashes, kHits, kArguments };
std::array<std::string_view, kArguments> argument_names();

/// The cache is filled at first use and kept (1 or 16 MiB); the reference computes dataset rows from it, on
/// all cores when many nonces are asked. `invalid` as check_parameters, or for a geometry that is not whole
/// rows or too large. reference() wants start, count and target as their little-endian bytes, and hits as it
/// is before the launch (empty: zeros).
Result<std::shared_ptr<const Recipe>> make_recipe(const Parameters& parameters, const Geometry& geometry);

}  // namespace furlong::program::lottery
