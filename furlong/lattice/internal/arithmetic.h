#pragma once
// Python's arithmetic on values, one operation at a time. Where Python would raise, a Fault comes back;
// where Python's unbounded integers would pass 64 bits, Fault::overflow.

#include <cstdint>
#include <optional>
#include <string_view>

#include "furlong/lattice/value.h"

namespace furlong::lattice::internal {

/// Why an operation has no value.
enum class Fault : std::uint8_t {
  none,
  overflow,       ///< an integer past 64 bits, or a float power past the largest float
  zero_division,  ///< / // % by zero, or zero to a negative power
  type,           ///< a word where a number is needed, a float where an integer is needed
  complex,        ///< a negative number to a fractional power
  shift,          ///< a negative shift
  not_finite,     ///< int() of an infinity or of no number
  empty,          ///< min or max of nothing
};

enum class Binary : std::uint8_t {
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  pow,
  shl,
  shr,
  bit_and,
  bit_or,
  bit_xor
};
enum class Unary : std::uint8_t { neg, pos, invert, abs, to_int };
enum class Order : std::uint8_t { less, less_equal, greater, greater_equal, equal, not_equal };

std::string_view symbol(Binary op);
std::string_view symbol(Unary op);
std::string_view symbol(Order op);

/// `out` may be the same object as an operand; it is unchanged on a fault.
Fault apply(Binary op, const Value& a, const Value& b, Value& out);
Fault apply(Unary op, const Value& a, Value& out);
/// -(-a // b): the quotient rounded up.
Fault ceil_div(const Value& a, const Value& b, Value& out);
Fault compare(Order op, const Value& a, const Value& b, bool& out);

/// Integers alone, for compiled constraints; the caller knows that b is not 0.
std::optional<std::int64_t> floor_div(std::int64_t a, std::int64_t b);
std::int64_t floor_mod(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> integer_power(std::int64_t base, std::int64_t exponent);
std::optional<std::int64_t> shift_left(std::int64_t a, std::int64_t n);
std::int64_t shift_right(std::int64_t a, std::int64_t n);
/// a / b rounded once, as Python does it also past 2^53.
double true_divide(std::int64_t a, std::int64_t b);

}  // namespace furlong::lattice::internal
