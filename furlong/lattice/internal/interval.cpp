#include "furlong/lattice/internal/interval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace furlong::lattice::internal {
namespace {

using Kind = Interval::Kind;

constexpr std::int64_t kExactFloat = std::int64_t{1} << 53;

bool numbers(const Interval& a, const Interval& b) {
  return a.kind == Kind::number && b.kind == Kind::number;
}

/// A result with these bounds, or `any` when a float among them would have to be rounded.
Interval bounded(std::int64_t lo, std::int64_t hi, bool real, bool fails) {
  if (real && (lo < -kExactFloat || hi > kExactFloat)) return Interval::unknown(true);
  return {lo, hi, Kind::number, real, fails};
}

bool exact_in_floats(const Interval& a) { return a.lo >= -kExactFloat && a.hi <= kExactFloat; }

/// The hull of f at the four corners; `any` when one of them has no value.
template <class F>
Interval corners(const Interval& a, const Interval& b, bool real, bool fails, F f) {
  const std::optional<std::int64_t> first = f(a.lo, b.lo);
  if (!first) return Interval::unknown(true);
  std::int64_t lo = *first;
  std::int64_t hi = *first;
  if (a.lo == a.hi && b.lo == b.hi) return bounded(lo, hi, real, fails);
  for (const auto& corner : {f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)}) {
    if (!corner) return Interval::unknown(true);
    lo = std::min(lo, *corner);
    hi = std::max(hi, *corner);
  }
  return bounded(lo, hi, real, fails);
}

std::optional<std::int64_t> ceil_quotient(std::int64_t a, std::int64_t b) {
  auto quotient = floor_div(a, b);
  if (quotient && floor_mod(a, b) != 0) ++*quotient;
  return quotient;
}

enum class Rounding { down, up, outward };

/// A quotient, rounded down (//) or up (ceil_div), or as the whole numbers around it (/).
Interval quotient(const Interval& a, const Interval& b, bool real, Rounding rounding) {
  const bool fails = a.fails || b.fails;
  if (b.lo <= 0 && b.hi >= 0) return Interval::unknown(true);
  const Interval down = corners(a, b, real, fails, floor_div);
  if (rounding == Rounding::down) return down;
  const Interval up = corners(a, b, real, fails, ceil_quotient);
  if (rounding == Rounding::up || up.kind == Kind::any || down.kind == Kind::any) return up;
  return bounded(down.lo, up.hi, real, fails);
}

Interval modulo(const Interval& a, const Interval& b, bool real) {
  const bool fails = a.fails || b.fails;
  if (b.lo <= 0 && b.hi >= 0) return Interval::unknown(true);
  if (a.lo == a.hi && b.lo == b.hi) {
    const std::int64_t rest = floor_mod(a.lo, b.lo);
    return bounded(rest, rest, real, fails);
  }
  const std::int64_t below = real ? 0 : 1;  // a float remainder may be rounded up to its divisor
  if (b.lo > 0) {
    if (a.lo >= 0 && a.hi < b.lo) return bounded(a.lo, a.hi, real, fails);
    const std::int64_t hi = b.hi - below;
    return bounded(0, a.lo >= 0 ? std::min(hi, a.hi) : hi, real, fails);
  }
  const std::int64_t lo = b.lo + below;
  return bounded(a.hi <= 0 ? std::max(lo, a.lo) : lo, 0, real, fails);
}

/// Powers, shifts and bit operations: of integers only; other operands are left to evaluation.
Interval of_integers(Binary op, const Interval& a, const Interval& b) {
  const bool fails = a.fails || b.fails;
  const bool single = a.lo == a.hi && b.lo == b.hi;
  const bool natural = a.lo >= 0 && b.lo >= 0;
  const auto from = [fails](std::optional<std::int64_t> lo, std::optional<std::int64_t> hi) {
    return lo && hi ? Interval{*lo, *hi, Kind::number, false, fails} : Interval::unknown(true);
  };
  const auto one = [&](std::int64_t value) { return from(value, value); };
  const auto all_ones = [&] {
    const auto width = std::bit_width(static_cast<std::uint64_t>(std::max(a.hi, b.hi)));
    return static_cast<std::int64_t>((std::uint64_t{1} << width) - 1);
  };
  if (!natural && !(single && b.lo >= 0)) {
    const bool bits = op == Binary::bit_and || op == Binary::bit_or || op == Binary::bit_xor;
    if (!(bits && single)) return Interval::unknown(true);
  }
  switch (op) {
    case Binary::pow:
      if (single) return from(integer_power(a.lo, b.lo), integer_power(a.lo, b.lo));
      if (a.lo == 0) {  // 0 ** 0 is 1
        const auto top = integer_power(a.hi, b.hi);
        return from(0, top ? std::optional(std::max<std::int64_t>(1, *top)) : std::nullopt);
      }
      return from(integer_power(a.lo, b.lo), integer_power(a.hi, b.hi));
    case Binary::shl:
      if (single) return from(shift_left(a.lo, b.lo), shift_left(a.lo, b.lo));
      return from(shift_left(a.lo, b.lo), shift_left(a.hi, b.hi));
    case Binary::shr:
      if (single) return one(shift_right(a.lo, b.lo));
      return from(shift_right(a.lo, b.hi), shift_right(a.hi, b.lo));
    case Binary::bit_and:
      return single ? one(a.lo & b.lo) : from(0, std::min(a.hi, b.hi));
    case Binary::bit_or:
      return single ? one(a.lo | b.lo) : from(std::max(a.lo, b.lo), all_ones());
    case Binary::bit_xor:
      return single ? one(a.lo ^ b.lo) : from(0, all_ones());
    default:
      return Interval::unknown(true);
  }
}

std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
std::optional<std::int64_t> checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

}  // namespace

Interval interval_of(const Value& value, WordIds& words) {
  if (const auto* i = value.integer()) return Interval::exactly(*i);
  if (const auto* b = value.boolean()) return Interval::exactly(*b ? 1 : 0);
  if (const auto* w = value.word()) {
    const std::int64_t id = words.id(*w);
    return {id, id, Kind::word, false, false};
  }
  const double d = *value.floating();
  if (!(std::fabs(d) <= static_cast<double>(kExactFloat))) return Interval::unknown(false);
  return {static_cast<std::int64_t>(std::floor(d)), static_cast<std::int64_t>(std::ceil(d)), Kind::number,
          true, false};
}

Interval unite(const Interval& a, const Interval& b) {
  const bool fails = a.fails || b.fails;
  if (a.kind != b.kind || a.kind == Kind::any) return Interval::unknown(fails);
  Interval both{std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.kind, a.real || b.real, fails};
  // An integer past 2^53 and a float together: no bound that floats hold.
  if (both.real && !exact_in_floats(both)) return Interval::unknown(fails);
  return both;
}

Interval apply(Binary op, const Interval& a, const Interval& b) {
  if (!numbers(a, b)) return Interval::unknown(true);
  const bool fails = a.fails || b.fails;
  bool real = a.real || b.real;
  if ((real || op == Binary::div) && !(exact_in_floats(a) && exact_in_floats(b)))
    return Interval::unknown(true);
  switch (op) {
    case Binary::add: {
      const auto lo = checked_add(a.lo, b.lo);
      const auto hi = checked_add(a.hi, b.hi);
      return lo && hi ? bounded(*lo, *hi, real, fails) : Interval::unknown(true);
    }
    case Binary::sub: {
      const auto lo = checked_sub(a.lo, b.hi);
      const auto hi = checked_sub(a.hi, b.lo);
      return lo && hi ? bounded(*lo, *hi, real, fails) : Interval::unknown(true);
    }
    case Binary::mul:
      return corners(a, b, real, fails, checked_mul);
    case Binary::div:
      return quotient(a, b, true, Rounding::outward);
    case Binary::floor_div:
      return quotient(a, b, real, Rounding::down);
    case Binary::mod:
      return modulo(a, b, real);
    default:
      return real ? Interval::unknown(true) : of_integers(op, a, b);
  }
}

Interval apply(Unary op, const Interval& a) {
  if (a.kind != Kind::number) return Interval::unknown(true);
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  switch (op) {
    case Unary::pos:
      return a;
    case Unary::to_int:
      return {a.lo, a.hi, Kind::number, false, a.fails};
    case Unary::invert:
      return a.real ? Interval::unknown(true) : Interval{~a.hi, ~a.lo, Kind::number, false, a.fails};
    case Unary::neg:
      return a.lo == lowest ? Interval::unknown(true) : Interval{-a.hi, -a.lo, Kind::number, a.real, a.fails};
    case Unary::abs:
      if (a.lo >= 0) return a;
      if (a.lo == lowest) return Interval::unknown(true);
      if (a.hi <= 0) return {-a.hi, -a.lo, Kind::number, a.real, a.fails};
      return {0, std::max(-a.lo, a.hi), Kind::number, a.real, a.fails};
  }
  return Interval::unknown(true);
}

Interval ceil_div(const Interval& a, const Interval& b) {
  if (!numbers(a, b)) return Interval::unknown(true);
  const bool real = a.real || b.real;
  if (real && !(exact_in_floats(a) && exact_in_floats(b))) return Interval::unknown(true);
  return quotient(a, b, real, Rounding::up);
}

Interval extreme(std::span<const Interval> operands, bool smallest) {
  if (operands.empty()) return Interval::unknown(true);
  Interval best = operands[0];
  for (const auto& operand : operands.subspan(1)) {
    if (!numbers(best, operand)) return Interval::unknown(true);
    best.lo = smallest ? std::min(best.lo, operand.lo) : std::max(best.lo, operand.lo);
    best.hi = smallest ? std::min(best.hi, operand.hi) : std::max(best.hi, operand.hi);
    best.real = best.real || operand.real;
    best.fails = best.fails || operand.fails;
  }
  if (best.real && !exact_in_floats(best)) return Interval::unknown(true);
  return best;
}

Interval compare(Comparator comparator, const Interval& a, const Interval& b) {
  const bool fails = a.fails || b.fails;
  const bool equality = comparator == Comparator::equal || comparator == Comparator::not_equal;
  const auto unknown = [](bool f) { return Interval::truth(false, false, f); };
  if (a.kind == Kind::any || b.kind == Kind::any) return unknown(fails || !equality);
  if (equality) {
    const bool wanted = comparator == Comparator::equal;
    if (a.kind != b.kind || a.hi < b.lo || b.hi < a.lo) return Interval::truth(true, !wanted, fails);
    if (a.lo == a.hi && b.lo == b.hi) return Interval::truth(true, wanted, fails);
    return unknown(fails);
  }
  if (a.kind != b.kind) return unknown(true);
  if (a.kind == Kind::word) return unknown(fails);  // ids have no order
  switch (comparator) {
    case Comparator::less:
      return Interval::truth(a.hi < b.lo || a.lo >= b.hi, a.hi < b.lo, fails);
    case Comparator::less_equal:
      return Interval::truth(a.hi <= b.lo || a.lo > b.hi, a.hi <= b.lo, fails);
    case Comparator::greater:
      return Interval::truth(a.lo > b.hi || a.hi <= b.lo, a.lo > b.hi, fails);
    case Comparator::greater_equal:
      return Interval::truth(a.lo >= b.hi || a.hi < b.lo, a.lo >= b.hi, fails);
    default:
      return unknown(true);
  }
}

Interval contains(const Interval& item, std::span<const Interval> elements) {
  bool fails = item.fails;
  bool found = false;
  bool open = false;
  for (const auto& element : elements) {
    fails = fails || element.fails;
    const Interval equal = compare(Comparator::equal, element, item);
    found = found || equal.surely_true();
    open = open || (!equal.surely_true() && !equal.surely_false());
  }
  return Interval::truth(found || !open, found, fails);
}

}  // namespace furlong::lattice::internal
