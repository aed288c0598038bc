#pragma once
// What is known of an expression's value while some of its knobs are still open: an interval that holds
// every value it can take. Sound, never exact by accident: where nothing useful is known the kind is `any`,
// and the caller evaluates the expression itself once all its names have values.

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "furlong/lattice/internal/arithmetic.h"
#include "furlong/lattice/internal/tree.h"

namespace furlong::lattice::internal {

struct Interval {
  enum class Kind : std::uint8_t {
    number,  ///< every value is a number in [lo, hi]
    word,    ///< every value is a word with an id in [lo, hi]; the empty word has id 0
    any,     ///< nothing is known
  };
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  Kind kind = Kind::number;
  bool real = false;   ///< may be a float; then |lo| and |hi| are at most 2^53, so that floats hold them
  bool fails = false;  ///< evaluation may be an error

  static Interval exactly(std::int64_t value) { return {value, value, Kind::number, false, false}; }
  static Interval unknown(bool fails) { return {0, 0, Kind::any, false, fails}; }
  static Interval truth(bool known, bool value, bool fails) {
    return {known && value ? 1 : 0, !known || value ? 1 : 0, Kind::number, false, fails};
  }
  /// One value, which is known.
  bool exact() const { return kind != Kind::any && !fails && lo == hi; }
  bool surely_true() const { return kind != Kind::any && (lo > 0 || hi < 0); }
  bool surely_false() const { return kind != Kind::any && lo == 0 && hi == 0; }
};

/// Words as numbers, so that equal words have equal ids.
class WordIds {
 public:
  std::int64_t id(const std::string& word) {
    if (word.empty()) return 0;
    return ids_.emplace(word, static_cast<std::int64_t>(ids_.size()) + 1).first->second;
  }

 private:
  std::map<std::string, std::int64_t> ids_;
};

Interval interval_of(const Value& value, WordIds& words);
/// The smallest interval that holds both.
Interval unite(const Interval& a, const Interval& b);

Interval apply(Binary op, const Interval& a, const Interval& b);
Interval apply(Unary op, const Interval& a);
Interval ceil_div(const Interval& a, const Interval& b);
Interval extreme(std::span<const Interval> operands, bool smallest);
/// The truth of one comparison; < to !=.
Interval compare(Comparator comparator, const Interval& a, const Interval& b);
/// The truth of `item in (elements)`.
Interval contains(const Interval& item, std::span<const Interval> elements);

}  // namespace furlong::lattice::internal
