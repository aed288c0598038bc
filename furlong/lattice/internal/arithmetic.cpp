#include "furlong/lattice/internal/arithmetic.h"

#include <bit>
#include <cmath>
#include <compare>
#include <limits>

namespace furlong::lattice::internal {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

/// A number of either kind; booleans are the integers 0 and 1.
struct Number {
  bool is_float = false;
  std::int64_t i = 0;
  double d = 0;
  double as_float() const { return is_float ? d : static_cast<double>(i); }
};

std::optional<Number> number(const Value& value) {
  if (const auto* i = value.integer()) return Number{false, *i, 0};
  if (const auto* b = value.boolean()) return Number{false, *b ? 1 : 0, 0};
  if (const auto* d = value.floating()) return Number{true, 0, *d};
  return std::nullopt;
}

Fault put(const std::optional<std::int64_t>& result, Value& out) {
  if (!result) return Fault::overflow;
  out = Value(*result);
  return Fault::none;
}

struct FloatDivision {
  double quotient;
  double remainder;
};

/// Python's float // and %: the remainder takes the divisor's sign, the quotient is the whole number
/// that goes with that remainder.
FloatDivision divide_floats(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {  // also when it is NaN
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (quotient != 0) {
    double floored = std::floor(quotient);
    if (quotient - floored > 0.5) floored += 1;
    quotient = floored;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
  return {quotient, remainder};
}

Fault float_power(double base, double exponent, Value& out) {
  if (base == 0 && exponent < 0) return Fault::zero_division;
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent))
    return Fault::complex;
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) return Fault::overflow;
  out = Value(result);
  return Fault::none;
}

Fault apply_integers(Binary op, std::int64_t a, std::int64_t b, Value& out) {
  std::int64_t r = 0;
  switch (op) {
    case Binary::add:
      return __builtin_add_overflow(a, b, &r) ? Fault::overflow : put(r, out);
    case Binary::sub:
      return __builtin_sub_overflow(a, b, &r) ? Fault::overflow : put(r, out);
    case Binary::mul:
      return __builtin_mul_overflow(a, b, &r) ? Fault::overflow : put(r, out);
    case Binary::div:
      if (b == 0) return Fault::zero_division;
      out = Value(true_divide(a, b));
      return Fault::none;
    case Binary::floor_div:
      return b == 0 ? Fault::zero_division : put(floor_div(a, b), out);
    case Binary::mod:
      return b == 0 ? Fault::zero_division : put(floor_mod(a, b), out);
    case Binary::pow:
      if (b < 0) return float_power(static_cast<double>(a), static_cast<double>(b), out);
      return put(integer_power(a, b), out);
    case Binary::shl:
      return b < 0 ? Fault::shift : put(shift_left(a, b), out);
    case Binary::shr:
      return b < 0 ? Fault::shift : put(shift_right(a, b), out);
    case Binary::bit_and:
      return put(a & b, out);
    case Binary::bit_or:
      return put(a | b, out);
    case Binary::bit_xor:
      return put(a ^ b, out);
  }
  return Fault::type;
}

Fault apply_floats(Binary op, double a, double b, Value& out) {
  switch (op) {
    case Binary::add:
      out = Value(a + b);
      return Fault::none;
    case Binary::sub:
      out = Value(a - b);
      return Fault::none;
    case Binary::mul:
      out = Value(a * b);
      return Fault::none;
    case Binary::div:
      if (b == 0) return Fault::zero_division;
      out = Value(a / b);
      return Fault::none;
    case Binary::floor_div:
      if (b == 0) return Fault::zero_division;
      out = Value(divide_floats(a, b).quotient);
      return Fault::none;
    case Binary::mod:
      if (b == 0) return Fault::zero_division;
      out = Value(divide_floats(a, b).remainder);
      return Fault::none;
    case Binary::pow:
      return float_power(a, b, out);
    default:
      return Fault::type;  // shifts and bit operations need integers
  }
}

/// Exact order of an integer and a float: neither is rounded to the other's type.
std::partial_ordering order(std::int64_t i, double d) {
  if (std::isnan(d)) return std::partial_ordering::unordered;
  if (d >= 0x1p63) return std::partial_ordering::less;
  if (d < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::trunc(d);
  const auto whole_integer = static_cast<std::int64_t>(whole);
  if (i != whole_integer) return i <=> whole_integer;
  return 0.0 <=> (d - whole);
}

std::partial_ordering order(const Number& a, const Number& b) {
  if (!a.is_float && !b.is_float) return a.i <=> b.i;
  if (a.is_float && b.is_float) return a.d <=> b.d;
  if (!a.is_float) return order(a.i, b.d);
  const auto swapped = order(b.i, a.d);
  return 0 <=> swapped;
}

bool holds(Order op, std::partial_ordering o) {
  switch (op) {
    case Order::less:
      return o < 0;
    case Order::less_equal:
      return o <= 0;
    case Order::greater:
      return o > 0;
    case Order::greater_equal:
      return o >= 0;
    case Order::equal:
      return o == 0;
    case Order::not_equal:
      return o != 0;
  }
  return false;
}

Fault to_int(const Number& a, Value& out) {
  if (!a.is_float) return put(a.i, out);
  if (!std::isfinite(a.d)) return Fault::not_finite;
  const double whole = std::trunc(a.d);
  if (whole >= 0x1p63 || whole < -0x1p63) return Fault::overflow;
  return put(static_cast<std::int64_t>(whole), out);
}

}  // namespace

std::string_view symbol(Binary op) {
  constexpr std::string_view names[] = {"+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view symbol(Unary op) {
  constexpr std::string_view names[] = {"-", "+", "~", "abs", "int"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view symbol(Order op) {
  constexpr std::string_view names[] = {"<", "<=", ">", ">=", "==", "!="};
  return names[static_cast<std::size_t>(op)];
}

std::optional<std::int64_t> floor_div(std::int64_t a, std::int64_t b) {
  if (b == -1) {
    if (a == kMin) return std::nullopt;
    return -a;
  }
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;  // the machine's kMin % -1 traps
  const std::int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

std::optional<std::int64_t> integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    exponent >>= 1;
    if (exponent == 0) return result;
    if (base == 0 || base == 1) return base == 0 ? 0 : result;
    if (base == -1) {
      base = 1;
    } else if (__builtin_mul_overflow(base, base, &base)) {
      return std::nullopt;  // some bit of the exponent is still to come, so the square is needed
    }
  }
}

std::optional<std::int64_t> shift_left(std::int64_t a, std::int64_t n) {
  if (a == 0) return 0;
  if (n > 62) return (a == -1 && n == 63) ? std::optional(kMin) : std::nullopt;
  const auto shifted = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << n);
  if ((shifted >> n) != a) return std::nullopt;
  return shifted;
}

std::int64_t shift_right(std::int64_t a, std::int64_t n) {
  if (n > 63) return a < 0 ? -1 : 0;
  return a >> n;
}

double true_divide(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (a >= -exact && a <= exact && b >= -exact && b <= exact)
    return static_cast<double>(a) / static_cast<double>(b);
  // Both as magnitudes; the quotient gets at least 55 bits and a sticky last bit, so that the conversion
  // to double is the only rounding.
  const bool negative = (a < 0) != (b < 0);
  const std::uint64_t n = a < 0 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
  const std::uint64_t d = b < 0 ? 0 - static_cast<std::uint64_t>(b) : static_cast<std::uint64_t>(b);
  if (n == 0) return negative ? -0.0 : 0.0;
  // n * 2^shift / d has between 62 and 64 bits.
  const int shift = 63 - std::bit_width(n) + std::bit_width(d);
  const Wide scaled = shift >= 0 ? static_cast<Wide>(n) << shift : static_cast<Wide>(n) >> -shift;
  const auto quotient = static_cast<std::uint64_t>(scaled / d);
  const bool rest = scaled % d != 0 || (shift < 0 && (n & ((std::uint64_t{1} << -shift) - 1)) != 0);
  const double magnitude = std::ldexp(static_cast<double>(quotient | (rest ? 1 : 0)), -shift);
  return negative ? -magnitude : magnitude;
}

Fault apply(Binary op, const Value& a, const Value& b, Value& out) {
  const auto x = number(a);
  const auto y = number(b);
  if (!x || !y) {
    constexpr std::size_t longest_word = 4096;
    if (op != Binary::add || !a.is_word() || !b.is_word()) return Fault::type;
    if (a.word()->size() + b.word()->size() > longest_word) return Fault::overflow;
    out = Value(*a.word() + *b.word());
    return Fault::none;
  }
  if (x->is_float || y->is_float) return apply_floats(op, x->as_float(), y->as_float(), out);
  const bool bits = op == Binary::bit_and || op == Binary::bit_or || op == Binary::bit_xor;
  if (bits && a.is_bool() && b.is_bool()) {  // stays a boolean, as in Python
    Value integers;
    apply_integers(op, x->i, y->i, integers);
    out = Value(integers.truthy());
    return Fault::none;
  }
  return apply_integers(op, x->i, y->i, out);
}

Fault apply(Unary op, const Value& a, Value& out) {
  const auto x = number(a);
  if (!x) return Fault::type;
  if (op == Unary::to_int) return to_int(*x, out);
  if (x->is_float) {
    if (op == Unary::invert) return Fault::type;
    const double d = x->d;
    out = Value(op == Unary::neg ? -d : op == Unary::abs ? std::fabs(d) : d);
    return Fault::none;
  }
  const std::int64_t i = x->i;
  if (op == Unary::invert) return put(~i, out);
  const bool negate = op == Unary::neg || (op == Unary::abs && i < 0);
  if (!negate) return put(i, out);
  if (i == kMin) return Fault::overflow;
  return put(-i, out);
}

Fault ceil_div(const Value& a, const Value& b, Value& out) {
  const auto x = number(a);
  const auto y = number(b);
  if (!x || !y) return Fault::type;
  if (x->is_float || y->is_float) {
    Value quotient;
    const Fault fault =
        apply_floats(Binary::floor_div, x->is_float ? -x->d : 0.0 - x->as_float(), y->as_float(), quotient);
    if (fault != Fault::none) return fault;
    return apply(Unary::neg, quotient, out);
  }
  if (y->i == 0) return Fault::zero_division;
  auto quotient = floor_div(x->i, y->i);
  // ceil = floor + 1 unless it divides; a quotient that leaves a rest is never the largest integer.
  if (quotient && floor_mod(x->i, y->i) != 0) ++*quotient;
  return put(quotient, out);
}

Fault compare(Order op, const Value& a, const Value& b, bool& out) {
  if (a.is_word() && b.is_word()) {
    out = holds(op, *a.word() <=> *b.word());
    return Fault::none;
  }
  const auto x = number(a);
  const auto y = number(b);
  if (x && y) {
    out = holds(op, order(*x, *y));
    return Fault::none;
  }
  if (op != Order::equal && op != Order::not_equal) return Fault::type;
  out = op == Order::not_equal;  // a word never equals a number
  return Fault::none;
}

}  // namespace furlong::lattice::internal
