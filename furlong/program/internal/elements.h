#pragma once
// Single elements of typed bytes.

#include <string>

#include "furlong/base/bytes.h"
#include "furlong/lattice/value.h"
#include "furlong/program/program.h"

namespace furlong::program::internal {

/// As a double; 64-bit integers lose bits beyond 2^53.
double element_number(ElementType type, const std::uint8_t* at);
/// Exactly, for messages: floats with as many digits as tell them apart.
std::string element_text(ElementType type, const std::uint8_t* at);
/// Stores a value; `invalid` "{what}: 300 does not fit u8" when it is not one of the type's: integers must be
/// in range, floats whole for integer types, and words are never numbers. Floats are rounded to the type.
Status store_element(ElementType type, const lattice::Value& value, std::string_view what, std::uint8_t* at);
/// Smallest and largest integer of an integer type; the largest as unsigned.
struct IntegerRange {
  std::int64_t low = 0;
  std::uint64_t high = 0;
};
IntegerRange integer_range(ElementType type);
/// The low bytes of an integer.
void store_integer(ElementType type, std::uint64_t value, std::uint8_t* at);
/// A float of the type, rounded to nearest.
void store_float(ElementType type, double value, std::uint8_t* at);

}  // namespace furlong::program::internal
